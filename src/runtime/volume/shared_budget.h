// SPDX-License-Identifier: Apache-2.0
// The disk of a host is one budget, and two runtimes promise of it: volumes and snapshots the one,
// local disks the other, images both. A SharedBudget is a folder in which each has a file with what
// it has promised; whoever promises more does so with the folder locked. What a dead runtime has
// promised counts until it is back: its files are there.
//
// Invariant: 1. What all files say together is never more than the total, but for images that a
// person put there, and for what was there before the total became smaller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"

namespace berth::runtime {

// Of one runtime.
struct DiskShare {
  int64_t total = 0;     // what all may promise together, as far as it knows; 0: others know
  int64_t promised = 0;  // but for what follows
  int64_t beside = 0;    // what guests need beside disks: logs of consoles, kernels
  std::map<std::string, int64_t> images = {};  // by folder: one that two runtimes use counts once
  // Of images on their way, by digest: what two runtimes fetch comes once.
  std::map<std::string, int64_t> arriving = {};
  bool operator==(const DiskShare&) const = default;
};

// Of all others, seen from one.
struct OtherShares {
  int64_t total = 0;  // the smallest that one of them names; 0: none does
  int64_t promised = 0;
  int64_t beside = 0;
  int64_t images = 0;    // in folders that are not its own
  int64_t arriving = 0;  // that do not come to it, too
  int64_t in_all() const { return promised + beside + images + arriving; }
};

// Pure. A text that is none is a BadRequest: what it may have promised is not known.
std::string ToText(const DiskShare& share);
Result<DiskShare> DiskShareOf(std::string_view text);
OtherShares Seen(const std::map<std::string, DiskShare>& all, const std::string& name);

// Room that was claimed for an object which is not counted yet. One at a time.
class ClaimedRoom {
 public:
  explicit ClaimedRoom(int64_t& bytes) : bytes_(bytes) {}
  ~ClaimedRoom() { bytes_ = 0; }
  ClaimedRoom(const ClaimedRoom&) = delete;
  ClaimedRoom& operator=(const ClaimedRoom&) = delete;

 private:
  int64_t& bytes_;
};

class SharedBudget {
 public:
  // Makes the folder, for its owner alone. `name` is this runtime's among those that share it. The
  // pool outlives this.
  static Result<std::unique_ptr<SharedBudget>> Open(std::string folder,
                                                    std::string name,
                                                    rt::BlockingPool& pool);

  using Check = std::function<Status(const OtherShares& others)>;
  // Writes down what we shall have promised then, if `check` is content with what others have;
  // nobody promises in between. Unavailable if somebody holds the lock for too long.
  rt::Task<Status> Claim(DiskShare mine, Check check);
  // The same without a question: it is so.
  rt::Task<Status> Settle(DiskShare mine);
  rt::Task<Result<OtherShares>> Others();

 private:
  SharedBudget(std::string folder, std::string name, rt::BlockingPool& pool)
      : folder_(std::move(folder)), name_(std::move(name)), pool_(pool) {}
  // These block, and hold the lock.
  Status ClaimNow(const DiskShare& mine, const Check& check) const;
  Result<std::map<std::string, DiskShare>> ReadAll() const;

  const std::string folder_;
  const std::string name_;
  rt::BlockingPool& pool_;
};

}  // namespace berth::runtime
