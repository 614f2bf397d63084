// SPDX-License-Identifier: Apache-2.0
// The Scheduler: follows pools, classes and objects in the API, hosts in the fleet, and places what
// needs a place while it leads. This is the shell; decisions are made in scheduler/core, the way to
// a binding is the Placer's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "client/binder.h"
#include "client/bulk_creator.h"
#include "client/cache/health_report.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "client/leader/leader_lease.h"
#include "fleet/fleet.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/adviser.h"
#include "scheduler/placing/bulk_placer.h"
#include "scheduler/placing/group_directory.h"
#include "scheduler/placing/group_reports.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/pending_reports.h"
#include "scheduler/placing/placer.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

inline constexpr char kSystemNamespace[] = "berth-system";
inline constexpr char kSchedulerLease[] = "scheduler";

struct SchedulerOptions {
  std::string holder;  // different for every process
  client::TakeOver take_over = client::TakeOver::kWhenExpired;
  uint64_t seed = 1;  // breaks ties between equal pools
  PlacerOptions placer;
};

class Scheduler {
 public:
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::Binder& binder;
    fleet::Fleet& fleet;
    const meta::Scheme& scheme;
    metrics::Registry& metrics;
  };
  // Everything outlives the scheduler.
  Scheduler(Deps deps, SchedulerOptions options);
  // REQUIRES: Run() has ended.
  ~Scheduler();

  // Runs until it is cancelled.
  rt::Task<Status> Run();

  // Knows every pool and object, and leads.
  bool ready() const { return is_synced_ && leader_.term().has_value(); }
  bool idle() const { return is_synced_ && placer_.idle(); }
  // How well it follows pools and objects.
  void Report(client::HealthReport& report) const;
  const Board& board() const { return board_; }
  const Placer& placer() const { return placer_; }
  // For copies of one object; lives as long as the scheduler, whether it leads or not.
  client::BulkCreator& bulk() { return bulk_; }
  // Answers on the scheduler's loop.
  client::PlacementAdvice& advice() { return adviser_; }
  const client::PoolRooms& rooms() const { return adviser_; }

 private:
  class ObjectSink;

  void OnObject(const meta::Object& now);
  void OnObjectGone(const std::string& uid);
  // There is no object of that name any more; the last one had that UID.
  void OnNameGone(const meta::KindInfo& kind, const client::ObjectKey& key, const std::string& uid);
  void OnPool(const meta::Object* before, const meta::Object* now);
  void OnMachineClass(const meta::Object* now, const std::string& name);
  void FollowClasses();
  // Who came before its class, or had the UID of another: what it asks for is known only now. Of
  // those that had one UID the first that is still there; "": they had no UID in common.
  rt::Task<Status> ReadAgain(ObjectDirectory::Waiting waiting, std::string uid);
  rt::Task<Status> FollowObjects();
  rt::Task<Status> FollowFleet();
  void SetTerm(std::optional<int64_t> term);
  void TryLead();

  rt::Loop& loop_;
  client::Client& client_;
  fleet::Fleet& fleet_;
  const SchedulerOptions options_;
  rt::TaskScope scope_;
  client::EventRecorder events_;
  Board board_;
  PoolDirectory pools_;
  ObjectDirectory objects_;
  GroupDirectory groups_;
  PendingReports reports_;
  GroupReports group_reports_;
  Placer placer_;
  BulkPlacer bulk_;
  Adviser adviser_;
  client::LeaderLease leader_;
  std::vector<std::unique_ptr<client::Informer>> informers_;  // pools and classes
  std::vector<std::unique_ptr<ObjectSink>> sinks_;            // machines, volumes, …
  bool is_synced_ = false;
};

}  // namespace berth::scheduler
