// SPDX-License-Identifier: Apache-2.0
// GroupReports keeps the status of MachineGroups: how many members there are, how many have a pool,
// and why the group has no place. Changes that come together are written together.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "apis/berth/machine_group.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "scheduler/placing/gang.h"
#include "scheduler/placing/group_directory.h"

namespace berth::scheduler {

// What the group's status should be. Pure.
apis::berth_dev::MachineGroupStatus StatusOf(const GroupRecord& group,
                                             const std::optional<GangWait>& wait,
                                             WallTime now);

class GroupReports {
 public:
  static constexpr Duration kEvery = Duration::Millis(200);
  static constexpr Duration kFailedAgainAfter = Duration::Seconds(1);

  // Why a complete group waits; nullopt if it does not.
  using Why = std::function<std::optional<GangWait>(const client::ObjectKey&)>;

  // Everything outlives the reports.
  GroupReports(rt::Loop& loop,
               client::Client& client,
               client::EventRecorder& events,
               const GroupDirectory& groups,
               Why why)
      : loop_(loop), client_(client), events_(events), groups_(groups), why_(std::move(why)) {}

  void Touch(const client::ObjectKey& key);
  // Only the one who leads writes.
  void SetLeading(bool is_leading);
  // Writes until it is cancelled.
  rt::Task<Status> Run();

 private:
  rt::Task<Status> Write(client::ObjectKey key);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder& events_;
  const GroupDirectory& groups_;
  const Why why_;
  bool is_leading_ = false;
  std::set<client::ObjectKey> touched_;
  rt::Event work_;
};

}  // namespace berth::scheduler
