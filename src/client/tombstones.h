// SPDX-License-Identifier: Apache-2.0
// A tombstone is the proof that a host may remove something that its object does not remember: the
// object left the store by force while it was bound to the host's pool, or was taken from the pool
// without the host's word (fenced) and may be gone by the time that the host returns. It is kept
// until the host has confirmed or the pool is removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "rt/task.h"

namespace berth::client {

struct Tombstone {
  std::string pool_uid;
  std::string uid;
  std::string kind;       // "Machine", "Volume", "Bucket"
  int64_t placement = 0;  // P: what the host has at this or a lower one, it removes
  bool operator==(const Tombstone&) const = default;
};

class Tombstones {
 public:
  virtual ~Tombstones() = default;

  // All of one pool, by UID of the object. A deletion that was seen on a watch has its tombstone.
  virtual rt::Task<Result<std::vector<Tombstone>>> ListTombstones(std::string pool_uid) = 0;
  // The host has confirmed these. Ok for those that are gone already.
  virtual rt::Task<Status> ClearTombstones(std::string pool_uid, std::vector<std::string> uids) = 0;
};

}  // namespace berth::client
