// SPDX-License-Identifier: Apache-2.0
#include "controller/taint_eviction/taint_eviction.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "base/log.h"
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
  const client::EventSubject subject{.kind = &kMachineKind, .key = request.key, .uid = request.uid};
  std::string tie;
  if (pool_mode != apis::core::kPoolModeSession) {
    tie = "its pool's poollet speaks the API and would leave it running";
  } else {
    CO_TRY(tie, co_await FindTie(request.key));
  }
  if (!tie.empty()) {
    REACHED("taint_eviction.stays");
    const std::string message = request.message + ", but it stays: " + tie;
    request.reason = "Stays";
    request.message = message;
    CO_TRY_STATUS(co_await client::SayItStays(loop_, client_, std::move(request)));
    events_.Record(subject, client::EventType::kWarning, "NotReleased", "Releasing", message);
    co_return OkStatus();
  }
  const std::string message = request.message + ": it is stopped and looks for another place";
  request.message = message;
  CO_TRY(const client::ReleaseOutcome outcome,
         co_await client::AskToLeave(loop_, client_, std::move(request)));
  if (outcome == client::ReleaseOutcome::kAsked) {
    REACHED("taint_eviction.released");
    events_.Record(subject, client::EventType::kWarning, "Released", "Releasing", message);
  }
  co_return OkStatus();
}

rt::Task<Result<std::string>> TaintEviction::FindTie(client::ObjectKey key) {
  const Result<meta::Object> found = co_await client_.Get(kMachineKind, key);
  if (found.status().Is(Reason::kNotFound)) co_return std::string();
  CO_TRY_STATUS(found);
  for (const auto& disk : found->as<Machine>().spec.volumes) {
    if (disk.local_disk || disk.empty_disk) {
      co_return "its disk " + disk.name + " is on this host only";
    }
    if (!disk.volume_ref && !disk.ephemeral) continue;
    const std::string name = disk.volume_ref ? disk.volume_ref->name : key.name + '-' + disk.name;
    const client::ObjectKey volume_key{.namespace_ = key.namespace_, .name = name};
    const Result<meta::Object> volume =
        co_await client_.Get(apis::storage::kVolumeKind, volume_key);
    if (volume.status().Is(Reason::kNotFound)) continue;
    CO_TRY_STATUS(volume);
    const auto& reference = volume->as<apis::storage::Volume>().spec.volume_pool_ref;
    if (!reference) continue;
    const client::ObjectKey pool_key{.namespace_ = "", .name = reference->name};
    const Result<meta::Object> pool =
        co_await client_.Get(apis::storage::kVolumePoolKind, pool_key);
    if (pool.status().Is(Reason::kNotFound)) continue;
    CO_TRY_STATUS(pool);
    const auto& spec = pool->as<apis::storage::VolumePool>().spec;
    if (apis::storage::ReachOf(spec) == apis::storage::kReachHost) {
      co_return "its volume " + name + " can be reached from this host only";
    }
  }
  co_return std::string();
}

}  // namespace berth::controller
