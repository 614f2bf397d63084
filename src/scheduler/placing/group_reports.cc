// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/group_reports.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::scheduler {
namespace {

using apis::berth_dev::MachineGroupCondition;
using apis::berth_dev::MachineGroupStatus;

void SetScheduled(MachineGroupStatus& status,
                  std::string_view value,
                  std::string_view reason,
                  std::string message,
                  WallTime now) {
  auto found = std::ranges::find(status.conditions, "Scheduled", &MachineGroupCondition::type);
  if (found == status.conditions.end()) {
    found = status.conditions.emplace(status.conditions.end());
    found->type = "Scheduled";
  }
  if (found->status != value) found->last_transition_time = WallTime::FromSeconds(now.seconds());
  found->status = value;
  found->reason = reason;
  found->message = std::move(message);
}

}  // namespace

MachineGroupStatus StatusOf(const GroupRecord& group,
                            const std::optional<GangWait>& wait,
                            WallTime now) {
  MachineGroupStatus status = group.status;
  status.members = static_cast<int32_t>(group.members.size());
  status.bound = static_cast<int32_t>(group.placed);
  // A plan is over when nobody is left whom it could still bring to a pool.
  std::erase_if(status.committed,
                [&group](const auto& entry) { return !group.members.contains(entry.first); });
  const bool is_over = std::ranges::all_of(status.committed, [&group](const auto& entry) {
    return group.members.at(entry.first).is_placed;
  });
  if (is_over) status.committed.clear();
  const std::string bound =
      std::to_string(group.placed) + " of " + std::to_string(group.members.size()) + " members";
  if (group.needed() == 0) {
    status.phase = apis::berth_dev::kGroupBound;
    SetScheduled(status, "True", "Bound", bound + " have a pool", now);
  } else if (!status.committed.empty()) {
    status.phase = apis::berth_dev::kGroupCommitted;
    SetScheduled(status, "True", "Committed", bound + " have a pool, the others follow", now);
  } else {
    status.phase = apis::berth_dev::kGroupPending;
    if (!group.is_complete()) {
      SetScheduled(status,
                   "False",
                   "WaitingForMembers",
                   std::to_string(group.members.size()) + " of " +
                       std::to_string(group.min_members) + " members exist",
                   now);
    } else if (wait && !wait->reason.empty()) {
      SetScheduled(status, "False", wait->reason, wait->message, now);
    }
  }
  return status;
}

void GroupReports::Touch(const client::ObjectKey& key) {
  touched_.insert(key);
  work_.Set();
}

void GroupReports::SetLeading(bool is_leading) {
  is_leading_ = is_leading;
  if (!is_leading) return;
  for (const client::ObjectKey& key : groups_.Keys()) Touch(key);
}

rt::Task<Status> GroupReports::Run() {
  for (;;) {
    if (touched_.empty() || !is_leading_) {
      work_.Reset();
      CO_TRY_STATUS(co_await work_.Wait());
      if (!is_leading_) touched_.clear();
    }
    CO_TRY_STATUS(co_await rt::Sleep(kEvery));
    const std::set<client::ObjectKey> keys = std::exchange(touched_, {});
    bool has_failed = false;
    for (const client::ObjectKey& key : keys) {
      const Status written = co_await Write(key);
      if (written.Is(Reason::kCancelled)) co_return written;
      if (written.ok() || written.Is(Reason::kNotFound)) continue;
      if (!written.Is(Reason::kConflict)) {
        LOG_WARNING("status of group {}: {}", key.name, written.ToString());
      }
      has_failed = true;
      Touch(key);
    }
    if (has_failed) CO_TRY_STATUS(co_await rt::Sleep(kFailedAgainAfter));
  }
}

rt::Task<Status> GroupReports::Write(client::ObjectKey key) {
  const GroupRecord* group = groups_.Find(key);
  if (group == nullptr || !group->exists() || !is_leading_) co_return OkStatus();
  const std::optional<GangWait> wait = why_(key);
  if (StatusOf(*group, wait, loop_.WallNow()) == group->status) co_return OkStatus();
  Result<meta::Object> object = co_await client_.Get(apis::berth_dev::kMachineGroupKind, key);
  CO_TRY_STATUS(object);
  group = groups_.Find(key);
  if (group == nullptr || object->metadata().uid != group->uid) co_return OkStatus();
  GroupRecord fresh = *group;
  auto& stored = object->as<apis::berth_dev::MachineGroup>().status;
  fresh.status = stored;
  const std::string phase = stored.phase;
  stored = StatusOf(fresh, wait, loop_.WallNow());
  if (stored == fresh.status) co_return OkStatus();
  const client::EventSubject subject = client::EventSubject::Of(*object);
  const bool became_bound = phase != stored.phase && stored.phase == apis::berth_dev::kGroupBound;
  const std::string message = stored.conditions.empty() ? "" : stored.conditions.front().message;
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  CO_TRY_STATUS(co_await client_.Update(*std::move(object), options));
  if (became_bound) {
    events_.Record(subject, client::EventType::kNormal, "Scheduled", "Binding", message);
  } else if (wait && !wait->reason.empty()) {
    events_.Record(
        subject, client::EventType::kWarning, "FailedScheduling", "Scheduling", wait->message);
  }
  co_return OkStatus();
}

}  // namespace berth::scheduler
