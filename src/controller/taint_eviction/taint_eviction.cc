// SPDX-License-Identifier: Apache-2.0
#include "controller/taint_eviction/taint_eviction.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/placement.h"
#include "apis/core/taints.h"
#include "client/cache/reflector.h"
#include "client/cache/twins.h"
#include "controller/object_failure.h"
#include "controller/pool_guests/guest_follower.h"
#include "controller/taint_eviction/leave_time.h"
#include "rt/chaos.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::compute::MachinePool;

constexpr Duration kLookAtLeastEvery = Duration::Hours(24);

// A taint more or less is no other reason: who was told of one is still known.
std::string NoExecuteOf(const meta::Object& pool) {
  const bool has_one =
      std::ranges::any_of(pool.as<MachinePool>().spec.taints,
                          [](const auto& taint) { return taint.effect == apis::core::kNoExecute; });
  return has_one ? std::string(apis::core::kNoExecute) : std::string();
}

}  // namespace

class TaintEviction::Guests final : public GuestFollower, private client::Sink {
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

  explicit Guests(Deps deps) : GuestFollower(std::move(deps)) { Follow(kMachineKind, *this); }
  std::map<std::string, Guest>& all() { return guests_; }

 private:
  void OnListBegin() override { guests_.clear(); }
  void OnListed(meta::Object object) override {
    if (!client::IsTwin(guests_, object)) Put(object);
  }
  void OnListEnd() override { Wake(); }
  void OnEvent(client::WatchEvent event) override {
    if (client::IsTwin(guests_, event.object)) return;
    if (event.type == client::WatchEvent::Type::kDeleted) {
      guests_.erase(event.object.metadata().uid);
    } else {
      Put(event.object);
      Wake();
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

  std::map<std::string, Guest> guests_;  // by UID
};

TaintEviction::TaintEviction(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      events_(loop, client, scheme, "berth-lifecycle"),
      leaver_(loop, client, events_),
      guests_(loop, client, "taint eviction", *this, NoExecuteOf) {}

TaintEviction::~TaintEviction() = default;

rt::Task<Status> TaintEviction::Run() { return guests_.Run(events_.Run()); }

void TaintEviction::Report(client::HealthReport& report) const {
  guests_.Report(report);
  events_.Report(report);
}

rt::Task<Result<std::optional<Duration>>> TaintEviction::Reconcile(std::string pool) {
  const meta::Object* object = guests_.FindSynced(pool);
  if (object == nullptr) co_return std::optional<Duration>();
  const std::vector<apis::core::Taint> taints = object->as<MachinePool>().spec.taints;
  const auto& agent = object->as<MachinePool>().status.agent;
  const std::string mode = agent ? agent->mode : std::string();
  const std::string pool_uid = object->metadata().uid;
  std::optional<Duration> next;
  std::vector<client::ReleaseRequest> due;
  for (auto& [uid, guest] : guests_.Find(pool)->all()) {
    if (guest.pool_uid != pool_uid) continue;
    const std::optional<LeaveTime> leave = FindLeaveTime(taints, guest.tolerations, guest.bound);
    if (!leave || guest.told == leave->taint) continue;
    const WallTime now = loop_.WallNow();
    if (leave->at > now) {
      // The taint may say any time: the difference of two is not always a Duration.
      const Duration wait = std::min(leave->at, now + kLookAtLeastEvery) - now;
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
  Status failure;  // of one of them: the others are asked all the same
  for (client::ReleaseRequest& request : due) {
    const std::string uid = request.uid;
    Status left = co_await Leave(std::move(request), mode);
    if (left.ok()) continue;
    // Everybody who is due will be looked at again.
    const bool is_its_own = IsObjectFailure(left);
    if (Guests* guests = guests_.Find(pool); guests != nullptr) {
      for (auto& [other, guest] : guests->all()) {
        if (!is_its_own || other == uid) guest.told.clear();
      }
    }
    if (!is_its_own) co_return left;
    failure = std::move(left);
  }
  CO_TRY_STATUS(failure);
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
