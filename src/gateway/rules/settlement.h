// SPDX-License-Identifier: Apache-2.0
// The Settlement after a restore (PROTOCOL 2.4, sequence 20), pure. The store was rewound: where an
// object runs was decided after the backup, and only its host knows. Until every host of the store
// was heard, an object of the backup is open: it is not assigned, moved, placed or removed. Hosts
// say which copies they have; the latest placement is the right one, and is adopted where it runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_map.h"
#include "client/binder.h"

namespace berth::gateway {

// What a host has, by a placement of an earlier incarnation.
struct HeldCopy {
  std::string host;
  std::string pool_uid;  // "": the host has no pool of its kind by now, so it cannot be adopted
  uint64_t incarnation = 0;
  uint64_t placement = 0;
  client::Amounts resources;
  std::vector<std::string> consumers;  // of a reservation: UIDs
};

class Settlement {
 public:
  struct Object {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    std::vector<HeldCopy> copies;  // one per host
    // The placement above which the store has it where it runs.
    std::optional<uint64_t> adopted_from;
  };

  // Before the list of what the store has is whole, everything is open.
  void Begin() { phase_ = Phase::kListing; }
  void Know(const std::string& uid, const meta::KindInfo& kind, client::ObjectKey key);
  // A pool whose host may have copies; `name` is for people.
  void Await(const std::string& pool_uid, std::string name, std::string host);
  void Listed() { phase_ = Phase::kOpen; }

  bool is_listing() const { return phase_ == Phase::kListing; }
  bool is_open() const { return phase_ != Phase::kSettled; }
  // Whether nothing may be done with it yet.
  bool IsOpen(std::string_view uid) const;
  Object* Find(std::string_view uid);

  // The host has said what it has, or is off.
  void HostHeard(const std::string& host);
  void PoolGone(const std::string& pool_uid) { awaited_.erase(pool_uid); }
  bool all_heard() const { return phase_ == Phase::kOpen && awaited_.empty(); }
  // "a, b and 7 more": whom everything waits for.
  std::string Awaited() const;

  // REQUIRES: IsOpen(uid), and the list is whole.
  void Claim(const std::string& uid, HeldCopy copy);
  // The copy of the latest placement; null if no host has one.
  static const HeldCopy* LatestOf(const Object& object);
  // It is as the store says from here on.
  void Close(const std::string& uid) { objects_.erase(uid); }
  std::vector<std::string> OpenUids() const;
  // Every host was heard. What is being adopted is closed by its own change.
  void Finish();

 private:
  enum class Phase : uint8_t { kSettled, kListing, kOpen };
  Phase phase_ = Phase::kSettled;
  struct Pool {
    std::string name;
    std::string host;
  };
  TextMap<Object> objects_;              // by UID
  std::map<std::string, Pool> awaited_;  // by UID
};

}  // namespace berth::gateway
