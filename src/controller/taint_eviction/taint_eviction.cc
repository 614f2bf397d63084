// SPDX-License-Identifier: Apache-2.0
#include "controller/taint_eviction/taint_eviction.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/placement.h"
#include "controller/taint_eviction/leave_time.h"
#include "rt/chaos.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::compute::Machine;
using apis::compute::MachinePool;

bool HasNoExecute(const meta::Object& pool) {
  return std::ranges::any_of(pool.as<MachinePool>().spec.taints, [](const auto& taint) {
    return taint.effect == apis::core::kNoExecute;
  });
}

// Of what the host reports, only who it is matters here. Whole, a pool is 8 KB.
void ForgetReports(meta::Object& pool) {
  auto& status = pool.as<MachinePool>().status;
  apis::compute::MachinePoolStatus kept;
  kept.agent = std::move(status.agent);
  status = std::move(kept);
}

}  // namespace

class TaintEviction::Guests final : public client::Sink {
 public:
  struct Guest {
    client::ObjectKey key;
    std::string uid;
    std::string pool_uid;
    int64_t placement = 0;
    WallTime bound;
    std::vector<apis::core::Toleration> tolerations;
    std::string told;  // why it stays, once it was told
  };

  Guests(TaintEviction& owner, std::string pool)
      : owner_(owner),
        pool_(std::move(pool)),
        scope_(owner.loop_),
        reflector_(owner.loop_,
                   owner.client_,
                   kMachineKind,
                   *this,
                   {.namespace_ = "",
                    .label_selector = "",
                    .field_selector = "spec.machinePoolRef.name=" + pool_}) {
    scope_.Spawn("taint_eviction.guests", reflector_.Run());
  }
  rt::Task<Status> Close() { return scope_.Close(); }
  bool synced() const { return reflector_.synced(); }
  const client::Reflector& reflector() const { return reflector_; }
  std::map<std::string, Guest>& all() { return guests_; }

 private:
  void OnListBegin() override { guests_.clear(); }
  void OnListed(meta::Object object) override { Put(object); }
  void OnListEnd() override { owner_.runner_.queue().Add(pool_); }
  void OnEvent(client::WatchEvent event) override {
    if (event.type == client::WatchEvent::Type::kDeleted) {
      guests_.erase(event.object.metadata().uid);
    } else {
      Put(event.object);
      owner_.runner_.queue().Add(pool_);
    }
  }
  void Put(const meta::Object& object) {
    const auto& machine = object.as<Machine>();
    const auto& placement = machine.status.placement;
    const std::string& uid = machine.metadata.uid;
    if (!placement || placement->pool_uid.empty() || !placement->release.empty() ||
        machine.metadata.deletion_timestamp) {
      guests_.erase(uid);
      return;
    }
    Guest& guest = guests_[uid];
    if (guest.placement != placement->epoch) guest.told.clear();
    guest.key = client::KeyOf(object);
    guest.uid = uid;
    guest.pool_uid = placement->pool_uid;
    guest.placement = placement->epoch;
    guest.bound = placement->bound_time;
    guest.tolerations = machine.spec.tolerations;
  }

  TaintEviction& owner_;
  const std::string pool_;
  std::map<std::string, Guest> guests_;  // by UID
  rt::TaskScope scope_;
  client::Reflector reflector_;
};

TaintEviction::TaintEviction(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      events_(loop, client, scheme, "berth-lifecycle"),
      leaver_(loop, client, events_),
      runner_(loop, "taint eviction", *this, 1),
      pools_(
          loop,
          client,
          kMachinePoolKind,
          [this](const meta::Object* before, const meta::Object* now) { OnPool(before, now); },
          ForgetReports),
      scope_(loop) {}

TaintEviction::~TaintEviction() = default;

rt::Task<Status> TaintEviction::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(pools_.Run());
  tasks.push_back(events_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  for (auto& [name, guests] : std::exchange(guests_, {})) CO_TRY_STATUS(co_await guests->Close());
  CO_TRY_STATUS(co_await scope_.Join());
  co_return ends.front();
}

void TaintEviction::Report(client::HealthReport& report) const {
  runner_.Report(report, pools_);
  for (const auto& [pool, guests] : guests_) report.Add(runner_.name(), guests->reflector());
}

void TaintEviction::OnPool(const meta::Object* before, const meta::Object* now) {
  const std::string& name = (now != nullptr ? now : before)->metadata().name;
  const auto found = guests_.find(name);
  if (now != nullptr && HasNoExecute(*now)) {
    if (found == guests_.end()) guests_[name] = std::make_unique<Guests>(*this, name);
    runner_.queue().Add(name);
    return;
  }
  if (found == guests_.end()) return;
  std::unique_ptr<Guests> over = std::move(found->second);
  guests_.erase(found);
  scope_.Spawn("taint_eviction.close", CloseGuests(std::move(over)));
}

rt::Task<Status> TaintEviction::CloseGuests(std::unique_ptr<Guests> guests) {
  co_return co_await guests->Close();
}

rt::Task<Result<std::optional<Duration>>> TaintEviction::Reconcile(std::string pool) {
  const meta::Object* object = pools_.Find({.namespace_ = "", .name = pool});
  auto found = guests_.find(pool);
  if (object == nullptr || found == guests_.end() || !found->second->synced()) {
    co_return std::optional<Duration>();
  }
  const std::vector<apis::core::Taint> taints = object->as<MachinePool>().spec.taints;
  const auto& agent = object->as<MachinePool>().status.agent;
  const std::string mode = agent ? agent->mode : std::string();
  const std::string pool_uid = object->metadata().uid;
  std::optional<Duration> next;
  std::vector<client::ReleaseRequest> due;
  for (auto& [uid, guest] : found->second->all()) {
    if (guest.pool_uid != pool_uid) continue;
    const std::optional<LeaveTime> leave = FindLeaveTime(taints, guest.tolerations, guest.bound);
    if (!leave || guest.told == leave->taint) continue;
    const Duration wait = leave->at - loop_.WallNow();
    if (wait > Duration()) {
      next = std::min(next.value_or(wait), wait);
      continue;
    }
    // Told once per taint: one that stays is not told again for every event.
    guest.told = leave->taint;
    due.push_back({.kind = &kMachineKind,
                   .key = guest.key,
                   .uid = uid,
                   .placement = guest.placement,
                   .reason = std::string(apis::core::kReleaseTaint),
                   .message = "pool " + pool + " has the taint " + leave->taint});
  }
  for (client::ReleaseRequest& request : due) {
    const std::string uid = request.uid;
    const Status left = co_await Leave(std::move(request), mode);
    if (left.ok()) continue;
    // Everybody who is due will be looked at again.
    if (found = guests_.find(pool); found != guests_.end()) {
      for (auto& [other, guest] : found->second->all()) guest.told.clear();
    }
    co_return left;
  }
  co_return next;
}

rt::Task<Status> TaintEviction::Leave(client::ReleaseRequest request, std::string pool_mode) {
  CO_TRY(const Departure departure, co_await leaver_.Ask(std::move(request), std::move(pool_mode)));
  switch (departure.outcome) {
    case Departure::Outcome::kAsked: REACHED("taint_eviction.released"); break;
    case Departure::Outcome::kLeavesAlready: break;
    case Departure::Outcome::kStays: REACHED("taint_eviction.stays"); break;
  }
  co_return OkStatus();
}

}  // namespace berth::controller
