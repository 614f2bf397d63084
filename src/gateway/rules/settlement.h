// SPDX-License-Identifier: Apache-2.0
// The Settlement after a restore (PROTOCOL 2.4, sequence 20), pure. The store was rewound: where an
// object runs was decided after the backup, and only its host knows. Until every host of the store
// was heard, an object of the backup is open: it is not assigned, moved, placed or removed. Hosts
// say which copies they have; the latest placement is the right one, and is adopted where it runs.
//
// What of the store cannot be read is named (ADR 0038). An unreadable pool is a host that was not
// heard. An unreadable object may be what a host has and the store does not know: as long as there
// are both, such copies are kept in mind, the settlement does not end, and the object is open as
// soon as it can be read. Of everything else only drains of hosts with such copies wait.
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
    const meta::KindInfo* kind = nullptr;  // null: a host has it, and the store does not know it
    client::ObjectKey key;
    bool is_unread = false;        // it could not be adopted: its body cannot be read
    std::vector<HeldCopy> copies;  // one per host
    // The placement above which the store has it where it runs.
    std::optional<uint64_t> adopted_from;
  };

  // Before the list of what the store has is whole, everything is open.
  void Begin() { phase_ = Phase::kListing; }
  void Know(const std::string& uid, const meta::KindInfo& kind, client::ObjectKey key);
  // Something that is there and cannot be read, so that its UID, or its host, is not known.
  struct Unread {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
  };
  void NoteUnread(const meta::KindInfo& kind, const client::ObjectKey& key);
  // It can be read by now, or is gone. False if it was not noted.
  bool ForgetUnread(const meta::KindInfo& kind, const client::ObjectKey& key);
  std::vector<Unread> AllUnread() const;
  // Whether a copy may be of something that cannot be read, so that the end has to wait.
  bool HasDoubt() const;
  // Whether the host may have what the store does not know of yet: then it is not empty. Also when
  // all is settled: a copy that was adopted is there until its own change has come.
  bool MayHide(std::string_view host) const;
  // The UID that is known to be that object's; "" for none.
  std::string UidAt(const meta::KindInfo& kind, const client::ObjectKey& key) const;
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
  bool all_heard() const {
    return phase_ == Phase::kOpen && awaited_.empty() && unread_pools_.empty();
  }
  // "a, b and 7 more": whom everything waits for.
  std::string Awaited() const;

  // REQUIRES: the list is whole, and IsOpen(uid) or HasUnread().
  void Claim(const std::string& uid, HeldCopy copy);
  // The copy of the latest placement; null if no host has one.
  static const HeldCopy* LatestOf(const Object& object);
  // It is as the store says from here on.
  void Close(const std::string& uid) { objects_.erase(uid); }
  std::vector<std::string> OpenUids() const;
  bool HasUnread() const { return !unread_objects_.empty(); }
  // Every host was heard, and there is no doubt. What is being adopted is closed by its own change.
  void Finish();

 private:
  enum class Phase : uint8_t { kSettled, kListing, kOpen };
  Phase phase_ = Phase::kSettled;
  struct Pool {
    std::string name;
    std::string host;
  };
  using Unreads = std::map<std::string, Unread>;  // by kind and key
  Unreads& UnreadOf(const meta::KindInfo& kind);

  TextMap<Object> objects_;              // by UID
  std::map<std::string, Pool> awaited_;  // by UID
  Unreads unread_objects_;
  Unreads unread_pools_;
};

}  // namespace berth::gateway
