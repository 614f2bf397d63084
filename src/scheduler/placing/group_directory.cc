// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/group_directory.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"

namespace berth::scheduler {

void GroupDirectory::OnGroup(const client::ObjectKey& key,
                             const apis::berth_dev::MachineGroup* now) {
  touched_.insert(key);
  GroupRecord& group = groups_[key];
  if (now == nullptr) {
    group.uid.clear();
    group.status = {};
    return Prune(key);
  }
  group.uid = now->metadata.uid;
  group.min_members = static_cast<size_t>(std::max(now->spec.min_members, 0));
  group.timeout = apis::berth_dev::TimeoutOf(now->spec);
  group.status = now->status;
}

void GroupDirectory::OnMachine(const meta::Object& now) {
  const auto& machine = now.as<apis::compute::Machine>();
  const auto& placement = machine.spec.placement;
  const std::string& uid = machine.metadata.uid;
  const bool is_member = placement && placement->group_ref && !machine.metadata.deletion_timestamp;
  if (!is_member) {
    if (group_of_.contains(uid)) Leave(uid);
    return;
  }
  const client::ObjectKey key{.namespace_ = machine.metadata.namespace_,
                              .name = placement->group_ref->name};
  const GroupMember member{
      .is_placed = machine.status.placement && !machine.status.placement->pool_uid.empty(),
      .priority = placement->priority.value_or(0)};
  if (const client::ObjectKey* before = GroupOf(uid); before != nullptr && *before != key)
    Leave(uid);
  GroupRecord& group = groups_[key];
  group_of_.insert_or_assign(uid, key);
  const auto [place, is_new] = group.members.try_emplace(uid);
  if (!is_new && place->second.is_placed == member.is_placed) return;
  if (place->second.is_placed) --group.placed;
  if (member.is_placed) ++group.placed;
  place->second = member;
  touched_.insert(key);
}

void GroupDirectory::OnMachineGone(std::string_view uid) {
  if (group_of_.contains(uid)) Leave(uid);
}

void GroupDirectory::Leave(std::string_view uid) {
  const auto of = group_of_.find(uid);
  const client::ObjectKey key = of->second;
  group_of_.erase(of);
  GroupRecord& group = groups_[key];
  const auto member = group.members.find(std::string(uid));
  if (member != group.members.end()) {
    if (member->second.is_placed) --group.placed;
    group.members.erase(member);
  }
  touched_.insert(key);
  Prune(key);
}

void GroupDirectory::Prune(const client::ObjectKey& key) {
  const auto found = groups_.find(key);
  if (found != groups_.end() && !found->second.exists() && found->second.members.empty()) {
    groups_.erase(found);
  }
}

const client::ObjectKey* GroupDirectory::GroupOf(std::string_view uid) const {
  const auto found = group_of_.find(uid);
  return found == group_of_.end() ? nullptr : &found->second;
}

const GroupRecord* GroupDirectory::Find(const client::ObjectKey& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

bool GroupDirectory::GoesAlone(std::string_view uid) const {
  const client::ObjectKey* key = GroupOf(uid);
  if (key == nullptr) return true;
  const GroupRecord* group = Find(*key);
  if (group == nullptr || !group->exists()) return false;
  return group->needed() == 0 || group->status.committed.contains(std::string(uid));
}

std::string GroupDirectory::PlannedPoolOf(std::string_view uid) const {
  const client::ObjectKey* key = GroupOf(uid);
  const GroupRecord* group = key == nullptr ? nullptr : Find(*key);
  if (group == nullptr) return "";
  const auto planned = group->status.committed.find(std::string(uid));
  return planned == group->status.committed.end() ? std::string() : planned->second;
}

std::set<client::ObjectKey> GroupDirectory::Keys() const {
  std::set<client::ObjectKey> keys;
  for (const auto& [key, group] : groups_) keys.insert(key);
  return keys;
}

std::set<client::ObjectKey> GroupDirectory::TakeTouched() { return std::exchange(touched_, {}); }

}  // namespace berth::scheduler
