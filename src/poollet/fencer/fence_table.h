// SPDX-License-Identifier: Apache-2.0
// What a fencer knows: which guests live until when, and which processes they are. Pure: time comes
// in, processes to kill come out. Times are nanoseconds of CLOCK_BOOTTIME.
//
//   lease ── deadline passes ──► expired: its processes are killed ── all dead ──► fenced
//     └───────────── release ─────────► (nothing) ◄──────────── release ────────────┘
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::poollet {

// More guests than a host can have; a peer that asks for more is refused.
inline constexpr size_t kFenceLeasesMax = 8192;
inline constexpr size_t kFenceProcessesMax = 8;  // of one guest
inline constexpr size_t kFenceUidBytesMax = 64;

// A process that no other one is mistaken for.
struct FenceProcess {
  int64_t pid = 0;
  uint64_t start_ticks = 0;
  auto operator<=>(const FenceProcess&) const = default;
};

struct FenceRequest {
  int64_t deadline = 0;
  std::vector<std::string> releases;  // applied first
  std::vector<std::string> leases;    // live until `deadline`
  struct Guest {
    std::string uid;
    FenceProcess process;
    bool operator==(const Guest&) const = default;
  };
  std::vector<Guest> guests;  // those without a lease are not taken
  bool operator==(const FenceRequest&) const = default;
};

struct FenceLease {
  int64_t deadline = 0;
  bool expired = false;  // for good: until it is released
  bool fenced = false;   // expired, and none of its processes lives
  std::set<FenceProcess> processes;
  bool operator==(const FenceLease&) const = default;
};

class FenceTable {
 public:
  using Leases = std::map<std::string, FenceLease, std::less<>>;

  // Invalid, and nothing is changed: too many, or a uid that is none.
  Status Apply(const FenceRequest& request, int64_t now);
  // Leases whose deadline is not later than `now` expire.
  void Expire(int64_t now);
  // The process is dead, or never was what it was said to be.
  void Died(const FenceProcess& process);
  // The uids that have become fenced since the last call.
  std::vector<std::string> TakeFenced();

  // Processes of expired leases: none of them may live.
  std::set<FenceProcess> Condemned() const;
  // All processes under leases.
  std::set<FenceProcess> Processes() const;
  // Of leases that have not expired.
  std::optional<int64_t> NextDeadline() const;

  const Leases& leases() const { return leases_; }
  // What an earlier life of the fencer has left.
  void Restore(Leases leases) { leases_ = std::move(leases); }

 private:
  void Settle();

  Leases leases_;
  std::vector<std::string> fenced_;
};

// [A-Za-z0-9._-]{1,64}: what stands in a line or a file name of ours.
bool IsFenceUid(std::string_view uid);

}  // namespace berth::poollet
