// SPDX-License-Identifier: Apache-2.0
// The GroupDirectory knows the MachineGroups and who is in them. A member is placed with its group,
// all or none, until enough members have a place or a plan for all of them is durable; from then on
// each goes its own way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "apis/berth/machine_group.h"
#include "base/time.h"
#include "client/client.h"
#include "meta/object.h"

namespace berth::scheduler {

struct GroupMember {
  bool is_placed = false;
  int32_t priority = 0;
};

struct GroupRecord {
  std::string uid;  // "": members name it, but it does not exist
  size_t min_members = 0;
  Duration timeout;
  apis::berth_dev::MachineGroupStatus status;  // as the store has it
  std::map<std::string, GroupMember> members;  // by UID, without those that are being deleted
  size_t placed = 0;                           // members with a place

  bool exists() const { return !uid.empty(); }
  bool is_complete() const { return exists() && members.size() >= min_members; }
  // How many more need a place before any gets one; 0: everybody goes alone.
  size_t needed() const { return placed >= min_members ? 0 : min_members - placed; }
};

class GroupDirectory {
 public:
  // Null: it is gone.
  void OnGroup(const client::ObjectKey& key, const apis::berth_dev::MachineGroup* now);
  void OnMachine(const meta::Object& now);
  void OnMachineGone(std::string_view uid);

  // Null: it is in none.
  const client::ObjectKey* GroupOf(std::string_view uid) const;
  // Null: nobody knows it.
  const GroupRecord* Find(const client::ObjectKey& key) const;
  // Whether the member is placed by itself.
  bool GoesAlone(std::string_view uid) const;
  // Name of the pool that a durable plan has for it; "" without.
  std::string PlannedPoolOf(std::string_view uid) const;
  std::set<client::ObjectKey> Keys() const;

  // Groups of which anything changed since the last call.
  std::set<client::ObjectKey> TakeTouched();

 private:
  void Leave(std::string_view uid);
  void Prune(const client::ObjectKey& key);

  std::map<client::ObjectKey, GroupRecord> groups_;
  std::map<std::string, client::ObjectKey, std::less<>> group_of_;
  std::set<client::ObjectKey> touched_;
};

}  // namespace berth::scheduler
