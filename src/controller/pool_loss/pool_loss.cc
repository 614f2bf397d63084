// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_loss/pool_loss.h"

#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/placement.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/k8s/config_map.h"
#include "base/log.h"
#include "controller/object_failure.h"
#include "rt/chaos.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

constexpr Duration kLookEvery = Duration::Millis(500);
constexpr char kMassLossEntry[] = "massLoss";
constexpr char kOverrideEntry[] = "override";

client::ObjectKey ClusterStatusKey() {
  return {.namespace_ = kClusterStatusNamespace, .name = kClusterStatusName};
}

// Its entry of that name; "" without one.
std::string EntryOf(const meta::Object& status, const char* name) {
  const auto& data = status.as<apis::k8s::ConfigMap>().data;
  const auto found = data.find(name);
  return found == data.end() ? std::string() : found->second;
}

// "" without one.
std::string ZoneOf(const meta::Object& pool) {
  const auto& labels = pool.metadata().labels;
  const auto zone = labels.find(std::string(apis::core::kZoneLabel));
  return zone == labels.end() ? std::string() : zone->second;
}

PoolSight SightOf(const fleet::PoolHealth& health) {
  PoolSight sight;
  sight.uid = health.pool_uid;
  sight.is_connected = health.contact == fleet::PoolHealth::Contact::kConnected;
  sight.silent_since = health.silent_since;
  if (health.contact == fleet::PoolHealth::Contact::kAway) {
    sight.planned_until = health.planned_until;
  }
  sight.last_grant = health.last_grant;
  sight.lease = health.lease;
  return sight;
}

}  // namespace

PoolLoss::PoolLoss(Deps deps, LossOptions options)
    : loop_(deps.loop),
      client_(deps.client),
      binder_(deps.binder),
      fleet_(deps.fleet),
      events_(deps.loop, deps.client, deps.scheme, "berth-lifecycle"),
      judge_(options),
      pools_(deps.loop,
             deps.client,
             apis::compute::kMachinePoolKind,
             zones_,
             client::ReflectorOptions{.namespace_ = "",
                                      .label_selector = "",
                                      .field_selector = "",
                                      .detail = client::Detail::kMetadata}),
      machines_(deps.loop,
                deps.client,
                apis::compute::kMachineKind,
                *this,
                client::ReflectorOptions{.namespace_ = "",
                                         .label_selector = "",
                                         .field_selector = "spec.machinePoolRef.name!=",
                                         .detail = client::Detail::kFull}),
      reserved_(deps.loop,
                deps.client,
                apis::core::kReservationKind,
                [this](const meta::Object* before, const meta::Object* now) {
                  const meta::Object& object = now != nullptr ? *now : *before;
                  File(reservations_, object, now != nullptr ? ReservedOf(*now) : std::nullopt);
                }) {}

void PoolLoss::OnListed(meta::Object object) {
  File(guests_, object, GuestOf(object.as<apis::compute::Machine>()));
}

void PoolLoss::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kBookmark) return;
  const bool is_gone = event.type == client::WatchEvent::Type::kDeleted;
  const auto& machine = event.object.as<apis::compute::Machine>();
  File(guests_, event.object, is_gone ? std::nullopt : GuestOf(machine));
}

void PoolLoss::File(Guests& guests, const meta::Object& object, std::optional<Guest> guest) {
  const std::string& uid = object.metadata().uid;
  const client::ObjectKey key = client::KeyOf(object);
  const bool is_copy = client::IsTwin(guests, object);
  if (is_copy && guest) {
    return twins_.Put(object.kind(), key, uid, *std::move(guest), guests.at(uid).key.name);
  }
  twins_.Remove(object.kind(), key);
  if (is_copy) return;
  if (!guest) {
    guests.erase(uid);
    guest = twins_.Take(uid);
  }
  if (guest) guests.insert_or_assign(uid, *std::move(guest));
}

std::optional<PoolLoss::Guest> PoolLoss::GuestOf(const apis::compute::Machine& machine) {
  const auto& annotations = machine.metadata.annotations;
  const auto replaced = annotations.find(std::string(apis::core::kOnPoolLossAnnotation));
  Guest guest;
  if (apis::compute::MovesOnPoolLoss(machine)) {
    guest.on_loss = Guest::OnLoss::kMove;
  } else if (replaced != annotations.end() && replaced->second == apis::core::kOnPoolLossReplace) {
    guest.on_loss = Guest::OnLoss::kReplace;
  }
  const bool is_placed = machine.status.placement && !machine.status.placement->pool_uid.empty();
  if (guest.on_loss == Guest::OnLoss::kKeep || !is_placed) return std::nullopt;
  if (guest.on_loss == Guest::OnLoss::kReplace && machine.metadata.deletion_timestamp) {
    return std::nullopt;
  }
  guest.kind = &apis::compute::kMachineKind;
  guest.key = {.namespace_ = machine.metadata.namespace_, .name = machine.metadata.name};
  guest.pool_uid = machine.status.placement->pool_uid;
  guest.placement = machine.status.placement->epoch;
  return guest;
}

void PoolLoss::Zones::OnListed(meta::Object object) {
  coming.insert_or_assign({object.metadata().uid, object.metadata().name}, ZoneOf(object));
}

void PoolLoss::Zones::OnEvent(client::WatchEvent event) {
  const meta::Object& pool = event.object;
  const std::pair key(pool.metadata().uid, pool.metadata().name);
  if (event.type == client::WatchEvent::Type::kDeleted) {
    known.erase(key);
  } else {
    known.insert_or_assign(key, ZoneOf(pool));
  }
}

const std::string* PoolLoss::Zones::Find(const std::string& uid) const {
  const auto found = known.lower_bound({uid, ""});
  return found == known.end() || found->first.first != uid ? nullptr : &found->second;
}

// Nothing of it runs: the host need not be dead for it to be elsewhere. One that is being deleted
// waits for its host, which keeps the room until it is told.
std::optional<PoolLoss::Guest> PoolLoss::ReservedOf(const meta::Object& object) {
  if (object.metadata().deletion_timestamp) return std::nullopt;
  const auto& reservation = object.as<apis::core::Reservation>();
  const auto& placement = reservation.status.placement;
  if (!placement || placement->pool_uid.empty() || apis::core::LeftOf(reservation) == 0) {
    return std::nullopt;
  }
  Guest guest;
  guest.kind = &apis::core::kReservationKind;
  guest.key = client::KeyOf(object);
  guest.pool_uid = placement->pool_uid;
  guest.placement = placement->epoch;
  guest.on_loss = Guest::OnLoss::kReserve;
  return guest;
}

rt::Task<Status> PoolLoss::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(pools_.Run());
  tasks.push_back(machines_.Run());
  tasks.push_back(reserved_.Run());
  tasks.push_back(events_.Run());
  tasks.push_back(Watch());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void PoolLoss::Report(client::HealthReport& report) const {
  constexpr std::string_view kName = "pool loss";
  report.Add(kName, pools_);
  report.Add(kName, machines_);
  report.Add(kName, reserved_);
  events_.Report(report);
}

rt::Task<Status> PoolLoss::Watch() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookEvery));
    if (!pools_.synced() || !machines_.synced() || !reserved_.synced()) continue;
    const Status looked = co_await Look();
    if (looked.Is(Reason::kCancelled)) co_return looked;
    if (!looked.ok()) LOG_WARNING("pool loss: {}; looking again", looked.ToString());
  }
}

rt::Task<Status> PoolLoss::Look() {
  if (!told_) CO_TRY_STATUS(co_await Recall());
  if (!told_->empty() && co_await IsOverridden()) judge_.OverrideMassLoss();
  std::set<std::string> movable;
  for (const auto& [uid, guest] : guests_) {
    if (guest.on_loss == Guest::OnLoss::kMove) movable.insert(guest.pool_uid);
  }
  co_return co_await Act(judge_.Look(Sights(), movable, loop_.Now()));
}

// What an earlier server told: nobody else would say that it is over.
rt::Task<Status> PoolLoss::Recall() {
  const Result<meta::Object> found =
      co_await client_.Get(apis::k8s::kConfigMapKind, ClusterStatusKey());
  if (found.status().Is(Reason::kInternal)) {
    // Nobody may ever mend it, and hosts are lost all the same (ADR 0038). There may have been a
    // brake: as if there was one, until all silence is judged anew.
    REACHED("pool_loss.brake_unreadable");
    LOG_WARNING("pool loss: {}; going on without it", found.status().ToString());
    told_ = std::string();
    is_written_ = false;
    judge_.Resume("what was told of lost pools cannot be read");
    co_return OkStatus();
  }
  if (!found.ok() && !found.status().Is(Reason::kNotFound)) co_return found.status();
  told_ = found.ok() ? EntryOf(*found, kMassLossEntry) : std::string();
  if (told_->empty()) co_return OkStatus();
  REACHED("pool_loss.brake_resumed");
  judge_.Resume(*told_);
  co_return OkStatus();
}

// A failure is no override.
rt::Task<bool> PoolLoss::IsOverridden() {
  const Result<meta::Object> found =
      co_await client_.Get(apis::k8s::kConfigMapKind, ClusterStatusKey());
  co_return found.ok() && EntryOf(*found, kOverrideEntry) == *told_;
}

std::vector<PoolSight> PoolLoss::Sights() const {
  std::vector<PoolSight> sights;
  for (const fleet::PoolHealth& health : fleet_.Health()) {
    const std::string* zone = zones_.Find(health.pool_uid);
    if (zone == nullptr) continue;  // of volumes or buckets
    sights.push_back(SightOf(health));
    sights.back().zone = *zone;
  }
  return sights;
}

rt::Task<Status> PoolLoss::Act(LossVerdict verdict) {
  CO_TRY_STATUS(co_await TellMassLoss(verdict));
  for (const std::string& pool : verdict.fence) fleet_.Fence(pool);
  // What cannot be done for one guest keeps nobody from the others.
  Status failure;
  for (const std::string& pool : verdict.replace) {
    CO_TRY_STATUS(co_await Replace(pool, &failure));
    CO_TRY_STATUS(co_await MoveAway(pool, Guest::OnLoss::kReserve, &failure));
  }
  for (const std::string& pool : verdict.move) {
    CO_TRY_STATUS(co_await MoveAway(pool, Guest::OnLoss::kMove, &failure));
  }
  co_return failure;
}

std::vector<std::pair<std::string, PoolLoss::Guest>> PoolLoss::GuestsOf(
    const std::string& pool_uid, Guest::OnLoss on_loss) const {
  std::vector<std::pair<std::string, Guest>> found;
  const Guests& guests = on_loss == Guest::OnLoss::kReserve ? reservations_ : guests_;
  for (const auto& [uid, guest] : guests) {
    if (guest.pool_uid == pool_uid && guest.on_loss == on_loss) found.emplace_back(uid, guest);
  }
  return found;
}

// The verdict is as old as the commits since: a host that came back meanwhile may have been granted
// a new lease, even if it is silent again.
bool PoolLoss::IsStillDead(const std::string& pool_uid) const {
  for (const fleet::PoolHealth& health : fleet_.Health()) {
    if (health.pool_uid != pool_uid) continue;
    const PoolSight sight = SightOf(health);
    return !sight.is_connected && loop_.Now() >= judge_.DeadAt(sight);
  }
  return false;
}

rt::Task<Status> PoolLoss::MoveAway(std::string pool_uid, Guest::OnLoss on_loss, Status* failure) {
  for (const auto& [uid, guest] : GuestsOf(pool_uid, on_loss)) {
    if (on_loss == Guest::OnLoss::kMove && !IsStillDead(pool_uid)) {
      REACHED("pool_loss.returned_meanwhile");
      break;
    }
    if (!fleet_.ClaimMove(uid, static_cast<uint64_t>(guest.placement))) {
      REACHED("pool_loss.returned_in_time");  // sequence 18
      continue;
    }
    Status unbound = co_await Unbind(uid, guest);
    if (unbound.ok()) continue;
    if (!IsObjectFailure(unbound)) co_return unbound;
    *failure = std::move(unbound);
  }
  co_return OkStatus();
}

rt::Task<Status> PoolLoss::Unbind(std::string uid, Guest guest) {
  const bool is_machine = guest.on_loss == Guest::OnLoss::kMove;
  const auto placement = static_cast<uint64_t>(guest.placement);
  client::UnbindRequest request;
  request.kind = guest.kind;
  request.key = guest.key;
  request.uid = uid;
  request.placement = guest.placement;
  request.proof = client::UnbindProof::kFenced;
  request.reason = apis::core::kReasonPoolLost;
  request.message =
      is_machine ? "the host fell silent; its copy has been killed by now" : "the host fell silent";
  std::vector<client::UnbindRequest> requests;
  requests.push_back(std::move(request));
  const std::vector<Status> verdicts = co_await binder_.UnbindBatch(std::move(requests));
  const Status& unbound = verdicts.front();
  if (unbound.Is(Reason::kConflict)) {
    // It is bound under another number already: nothing of ours was written.
    fleet_.EndMove(uid, placement, fleet::MoveOutcome::kAbandoned);
    co_return OkStatus();
  }
  // Unknown (S4): the claim stays, and the object's own events or the next look decide. The unbind
  // is conditioned on the placement, so saying it twice does no harm.
  CO_TRY_STATUS(unbound);
  fleet_.EndMove(uid, placement, fleet::MoveOutcome::kCommitted);
  const char* what = "the host fell silent: room is looked for elsewhere";
  if (is_machine) {
    REACHED("pool_loss.moved");
    what = "the host fell silent and its copy has been killed: placing it elsewhere";
  } else {
    REACHED("pool_loss.reservation_moved");
  }
  events_.Record({.kind = guest.kind, .key = guest.key, .uid = uid},
                 client::EventType::kWarning,
                 "PoolLost",
                 "Moving",
                 what);
  co_return OkStatus();
}

rt::Task<Status> PoolLoss::Replace(std::string pool_uid, Status* failure) {
  for (const auto& [uid, guest] : GuestsOf(pool_uid, Guest::OnLoss::kReplace)) {
    client::DeleteOptions options;
    options.uid = uid;
    const Status deleted = co_await client_.Delete(apis::compute::kMachineKind, guest.key, options);
    if (IsObjectFailure(deleted)) {
      *failure = deleted;
      continue;
    }
    if (!deleted.ok() && !deleted.Is(Reason::kNotFound) && !deleted.Is(Reason::kConflict)) {
      co_return deleted;
    }
    REACHED("pool_loss.replaced");
    guests_.erase(uid);
    events_.Record(
        {.kind = &apis::compute::kMachineKind, .key = guest.key, .uid = uid},
        client::EventType::kWarning,
        "PoolLost",
        "Replacing",
        "the host fell silent: replaced by a new one, and removed when the host returns");
  }
  co_return OkStatus();
}

rt::Task<Status> PoolLoss::TellMassLoss(LossVerdict verdict) {
  const std::string before = *told_;
  if (verdict.mass_loss == before && is_written_) co_return OkStatus();
  const Status written = co_await WriteMassLoss(verdict.mass_loss);
  if (written.Is(Reason::kInternal)) {
    // It cannot be read (ADR 0038), and is written once it can be or is gone.
    if (is_written_) LOG_WARNING("pool loss: {}; going on without it", written.ToString());
  } else {
    CO_TRY_STATUS(written);
  }
  is_written_ = written.ok();
  told_ = verdict.mass_loss;
  if (verdict.mass_loss == before) co_return OkStatus();
  const bool ended = verdict.mass_loss.empty();
  if (!ended && !before.empty()) co_return OkStatus();  // other numbers
  const char* reason = "MassLoss";
  std::string text = verdict.mass_loss + ": nothing is moved or replaced until contact returns";
  if (ended && verdict.is_released) {
    reason = "BrakeReleased";
    text = "an operator released the brake: lost pools are handled again";
  } else if (ended) {
    reason = "ContactReturned";
    text = "contact returned: lost pools are handled again";
  }
  LOG_WARNING("mass loss: {}", text);
  events_.Record({.kind = &apis::k8s::kConfigMapKind, .key = ClusterStatusKey(), .uid = ""},
                 ended ? client::EventType::kNormal : client::EventType::kWarning,
                 reason,
                 "Braking",
                 std::move(text));
  co_return OkStatus();
}

// An override is for the text that was told when it was written: whatever is there now is an old
// one.
rt::Task<Status> PoolLoss::WriteMassLoss(std::string text) {
  const client::ObjectKey key = ClusterStatusKey();
  Result<meta::Object> found = co_await client_.Get(apis::k8s::kConfigMapKind, key);
  const client::WriteOptions options;
  if (found.status().Is(Reason::kNotFound)) {
    apis::k8s::ConfigMap status;
    status.metadata.namespace_ = key.namespace_;
    status.metadata.name = key.name;
    status.data[kMassLossEntry] = std::move(text);
    meta::Object object = meta::Object::Of(apis::k8s::kConfigMapKind, std::move(status));
    co_return (co_await client_.Create(std::move(object), options)).status();
  }
  CO_TRY_STATUS(found);
  auto& data = found->as<apis::k8s::ConfigMap>().data;
  data[kMassLossEntry] = std::move(text);
  data.erase(kOverrideEntry);
  co_return (co_await client_.Update(*std::move(found), options)).status();
}

}  // namespace berth::controller
