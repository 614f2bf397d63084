// SPDX-License-Identifier: Apache-2.0
// What was deleted by force while its pool was away: the record `tombstones-<pool uid>`, one entry
// per object. Kept until the host says Gone or the pool is removed (PROTOCOL 4.3).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "client/records/config_record.h"
#include "rt/task.h"

namespace berth::client {

inline constexpr std::string_view kTombstoneRecordPrefix = "tombstones-";

struct Tombstone {
  std::string kind;  // "Machine", "Volume", "Bucket"
  uint64_t placement = 0;
  bool operator==(const Tombstone&) const = default;
};
using Tombstones = std::map<std::string, Tombstone>;  // by the object's UID

std::string TombstoneRecordName(std::string_view pool_uid);
// Entries that cannot be read are left out: nothing is removed on their account.
Tombstones ParseTombstones(const RecordEntries& entries);

// Idempotent, both.
rt::Task<Status> AddTombstone(Client& client,
                              std::string pool_uid,
                              std::string uid,
                              Tombstone tombstone);
rt::Task<Status> RemoveTombstone(Client& client, std::string pool_uid, std::string uid);

}  // namespace berth::client
