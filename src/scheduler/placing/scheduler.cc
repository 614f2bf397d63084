// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/scheduler.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/k8s/priority_class.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "base/log.h"
#include "rt/backoff.h"
#include "rt/chaos.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::scheduler {
namespace {

// How often a start looks whether its informers are synchronised: nothing is placed before.
constexpr Duration kLookForSync = Duration::Millis(2);

// The directory has its own record of a pool. Whole, a pool is 8 KB.
void ForgetBody(meta::Object& pool) {
  pool.ClearField("spec");
  pool.ClearField("status");
}

}  // namespace

// Keeps records instead of objects: a decoded machine weighs ten times as much.
class Scheduler::ObjectSink final : public client::Sink {
 public:
  ObjectSink(Scheduler& scheduler, const meta::KindInfo& kind)
      : scheduler_(scheduler),
        kind_(kind),
        reflector_(scheduler.loop_, scheduler.client_, kind, *this, {}) {}

  rt::Task<Status> Run() { return reflector_.Run(); }
  bool synced() const { return reflector_.synced(); }
  const client::Reflector& reflector() const { return reflector_; }

 private:
  void OnListBegin() override { unseen_ = scheduler_.objects_.UidsOf(kind_); }
  void OnListed(meta::Object object) override {
    unseen_.erase(client::KeyOf(object));
    scheduler_.OnObject(object);
  }
  void OnListEnd() override {
    for (const auto& [key, uid] : std::exchange(unseen_, {}))
      scheduler_.OnNameGone(kind_, key, uid);
  }
  void OnComing(std::span<const client::WatchEvent> events) override {
    coming_.clear();
    for (const client::WatchEvent& event : events)
      coming_.push_back(ObjectKey::FromUid(event.object.metadata().uid));
    scheduler_.board_.Expect(coming_);
  }
  void OnEvent(client::WatchEvent event) override {
    if (event.type != client::WatchEvent::Type::kDeleted) return scheduler_.OnObject(event.object);
    scheduler_.OnNameGone(kind_, client::KeyOf(event.object), event.object.metadata().uid);
  }

  Scheduler& scheduler_;
  const meta::KindInfo& kind_;
  std::map<client::ObjectKey, std::string> unseen_;  // during a list: what it has not told yet
  std::vector<ObjectKey> coming_;                    // of OnComing
  client::Reflector reflector_;
};

Scheduler::Scheduler(Deps deps, SchedulerOptions options)
    : loop_(deps.loop),
      client_(deps.client),
      fleet_(deps.fleet),
      options_(std::move(options)),
      scope_(deps.loop),
      events_(deps.loop, deps.client, deps.scheme, "berth-scheduler"),
      board_(BoardOptions{.seed = options_.seed}),
      pools_(board_),
      objects_(board_, pools_),
      reports_(deps.loop,
               deps.client,
               events_,
               [this](const std::string& uid) { return placer_.Explain(uid); }),
      group_reports_(deps.loop,
                     deps.client,
                     events_,
                     groups_,
                     [this](const client::ObjectKey& key) { return placer_.GangWaitOf(key); }),
      placer_(Placer::Deps{.loop = deps.loop,
                           .scope = scope_,
                           .board = board_,
                           .pools = pools_,
                           .objects = objects_,
                           .fleet = deps.fleet,
                           .client = deps.client,
                           .binder = deps.binder,
                           .events = events_,
                           .reports = reports_,
                           .metrics = deps.metrics,
                           .groups = groups_,
                           .on_group =
                               [this](const client::ObjectKey& key) { group_reports_.Touch(key); }},
              options_.placer),
      bulk_(BulkPlacer::Deps{.loop = deps.loop,
                             .board = board_,
                             .pools = pools_,
                             .objects = objects_,
                             .placer = placer_,
                             .fleet = deps.fleet,
                             .client = deps.client,
                             .binder = deps.binder,
                             .events = events_,
                             .metrics = deps.metrics}),
      adviser_(Adviser::Deps{.board = board_,
                             .pools = pools_,
                             .objects = objects_,
                             .placer = placer_,
                             .groups = groups_,
                             .is_ready = [this] { return ready(); }}),
      leader_(
          deps.loop,
          deps.client,
          client::LeaderOptions{.lease = {.namespace_ = kSystemNamespace, .name = kSchedulerLease},
                                .holder = options_.holder,
                                .take_over = options_.take_over},
          [this](std::optional<int64_t> term) { SetTerm(term); }) {
  for (const meta::KindInfo* kind : {&apis::compute::kMachinePoolKind,
                                     &apis::storage::kVolumePoolKind,
                                     &apis::storage::kBucketPoolKind}) {
    informers_.push_back(std::make_unique<client::Informer>(
        loop_,
        client_,
        *kind,
        [this](const meta::Object* before, const meta::Object* now) { OnPool(before, now); },
        ForgetBody));
  }
  FollowClasses();
  for (const meta::KindInfo* kind : {&apis::core::kReservationKind,
                                     &apis::storage::kVolumeKind,
                                     &apis::storage::kVolumeSnapshotKind,
                                     &apis::compute::kMachineKind,
                                     &apis::storage::kBucketKind}) {
    sinks_.push_back(std::make_unique<ObjectSink>(*this, *kind));
  }
}

// What machines refer to: how large they are, how important, how many of a set may be stopped.
void Scheduler::FollowClasses() {
  informers_.push_back(std::make_unique<client::Informer>(
      loop_,
      client_,
      apis::compute::kMachineClassKind,
      [this](const meta::Object* before, const meta::Object* now) {
        OnMachineClass(now, (now != nullptr ? now : before)->metadata().name);
      }));
  informers_.push_back(std::make_unique<client::Informer>(
      loop_,
      client_,
      apis::k8s::kPriorityClassKind,
      [this](const meta::Object* before, const meta::Object* now) {
        placer_.Apply(objects_.OnPriorityClass(
            (now != nullptr ? now : before)->metadata().name,
            now == nullptr ? nullptr : &now->as<apis::k8s::PriorityClass>()));
      }));
  informers_.push_back(std::make_unique<client::Informer>(
      loop_,
      client_,
      apis::berth_dev::kMachineGroupKind,
      [this](const meta::Object* before, const meta::Object* now) {
        groups_.OnGroup(client::KeyOf(now != nullptr ? *now : *before),
                        now == nullptr ? nullptr : &now->as<apis::berth_dev::MachineGroup>());
        placer_.OnGroups();
      }));
  informers_.push_back(std::make_unique<client::Informer>(
      loop_,
      client_,
      apis::berth_dev::kMachineSetKind,
      [this](const meta::Object* before, const meta::Object* now) {
        objects_.OnMachineSet((now != nullptr ? now : before)->metadata().uid,
                              now == nullptr ? nullptr : &now->as<apis::berth_dev::MachineSet>());
      }));
}

Scheduler::~Scheduler() = default;

rt::Task<Status> Scheduler::Run() {
  std::vector<rt::Task<Status>> tasks;
  for (const auto& informer : informers_) tasks.push_back(informer->Run());
  tasks.push_back(FollowObjects());
  tasks.push_back(FollowFleet());
  tasks.push_back(events_.Run());
  tasks.push_back(reports_.Run());
  tasks.push_back(group_reports_.Run());
  tasks.push_back(leader_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  placer_.SetLeadership(std::nullopt);
  bulk_.SetLeadership(std::nullopt);
  CO_TRY_STATUS(co_await scope_.Close());
  co_return ends.front();
}

void Scheduler::Report(client::HealthReport& report) const {
  constexpr std::string_view kName = "scheduler";
  for (const auto& informer : informers_) report.Add(kName, *informer);
  for (const auto& sink : sinks_) report.Add(kName, sink->reflector());
  events_.Report(report);
}

// Objects come after pools and classes: what is placed finds its pool on the board at once.
rt::Task<Status> Scheduler::FollowObjects() {
  const auto synced = [](const auto& follower) { return follower->synced(); };
  while (!std::all_of(informers_.begin(), informers_.end(), synced)) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookForSync));
  }
  for (const auto& sink : sinks_) scope_.Spawn("scheduler.objects", sink->Run());
  while (!std::all_of(sinks_.begin(), sinks_.end(), synced)) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookForSync));
  }
  is_synced_ = true;
  TryLead();
  co_return OkStatus();
}

rt::Task<Status> Scheduler::FollowFleet() {
  for (;;) {
    const std::unique_ptr<fleet::FleetWatch> watch = fleet_.Watch();
    pools_.Resync(fleet_.Pools());
    placer_.OnBoardChanged();
    bool is_whole = true;
    while (is_whole) {
      CO_TRY(const std::vector<fleet::FleetEvent> events, co_await watch->Next());
      for (const fleet::FleetEvent& event : events) {
        if (event.type == fleet::FleetEvent::Type::kOverflow) {
          is_whole = false;
        } else {
          pools_.OnFleet(event);
        }
      }
      placer_.OnBoardChanged();
    }
  }
}

void Scheduler::OnObject(const meta::Object& now) {
  // The same name under another UID: the old one is gone, even if nobody said so. Also if nobody
  // takes it up under the new one.
  const ObjectRecord* before = objects_.FindByKey(now.kind(), client::KeyOf(now));
  if (before != nullptr && before->uid != now.metadata().uid) {
    const std::string old = before->uid;
    OnObjectGone(old);
  }
  if (objects_.PassesOver(now)) return;
  if (&now.kind() == &apis::compute::kMachineKind) groups_.OnMachine(now);
  placer_.Apply(objects_.OnObject(now));
  placer_.OnGroups();
}

void Scheduler::OnObjectGone(const std::string& uid) {
  groups_.OnMachineGone(uid);
  placer_.Apply(objects_.OnGone(uid));
  placer_.OnGroups();
  ObjectDirectory::Waiting twin = objects_.TakeTwin(uid);
  if (!twin.empty()) scope_.Spawn("scheduler.twin", ReadAgain(std::move(twin), uid));
}

void Scheduler::OnNameGone(const meta::KindInfo& kind,
                           const client::ObjectKey& key,
                           const std::string& uid) {
  if (objects_.ForgetTwin(kind, key)) return;
  // Who has its UID may be another one by now.
  const ObjectRecord* record = objects_.Find(uid);
  if (record == nullptr || (record->kind == &kind && record->key == key)) OnObjectGone(uid);
}

void Scheduler::OnPool(const meta::Object* before, const meta::Object* now) {
  switch (pools_.OnObject(before, now)) {
    case PoolDirectory::Became::kNothing: break;
    case PoolDirectory::Became::kNew:
      placer_.Apply(
          objects_.OnPoolAdded(*pools_.FindByUid((now != nullptr ? now : before)->metadata().uid)));
      break;
    case PoolDirectory::Became::kElsewhere: placer_.Apply(objects_.OnReachChanged()); break;
  }
  placer_.OnBoardChanged();
}

void Scheduler::OnMachineClass(const meta::Object* now, const std::string& name) {
  pools_.RestoreClasses();
  placer_.OnBoardChanged();
  if (now == nullptr) return objects_.OnMachineClassGone(name);
  ObjectDirectory::Waiting waiting =
      objects_.OnMachineClass(now->as<apis::compute::MachineClass>());
  if (!waiting.empty()) scope_.Spawn("scheduler.class", ReadAgain(std::move(waiting), ""));
}

// Nobody else knows of them any more, so they are tried until they are read.
rt::Task<Status> Scheduler::ReadAgain(ObjectDirectory::Waiting waiting, std::string uid) {
  rt::Backoff pause;
  while (!waiting.empty()) {
    ObjectDirectory::Waiting unread;
    Status why;
    for (const auto& [kind, key] : waiting) {
      const Result<meta::Object> object = co_await client_.Get(*kind, key);
      if (object.ok()) {
        OnObject(*object);
        continue;
      }
      if (object.status().Is(Reason::kCancelled)) co_return object.status();
      // One that was damaged meanwhile keeps nobody from the others (ADR 0038).
      if (object.status().Is(Reason::kNotFound) || object.status().Is(Reason::kInternal)) continue;
      why = object.status();
      unread.emplace_back(kind, key);
    }
    waiting = std::move(unread);
    if (!waiting.empty()) {
      REACHED("scheduler.read_again");
      LOG_WARNING("scheduler: {} objects are to be read again: {}", waiting.size(), why.ToString());
      CO_TRY_STATUS(co_await rt::Sleep(pause.Next(loop_.random())));
    } else if (!uid.empty() && objects_.Find(uid) == nullptr) {
      waiting = objects_.TakeTwin(uid);  // the one that was read is gone, or has another UID
    }
  }
  co_return OkStatus();
}

void Scheduler::SetTerm(std::optional<int64_t> term) {
  if (term) {
    LOG_INFO("scheduler: leading, term {}", *term);
  } else {
    LOG_WARNING("scheduler: not leading any more");
  }
  TryLead();
}

void Scheduler::TryLead() {
  std::optional<Leadership> leadership;
  if (is_synced_ && leader_.term()) {
    leadership = Leadership{.holder = leader_.holder(), .term = *leader_.term()};
  }
  group_reports_.SetLeading(leadership.has_value());
  bulk_.SetLeadership(leadership);
  placer_.SetLeadership(std::move(leadership));
}

}  // namespace berth::scheduler
