// SPDX-License-Identifier: Apache-2.0
#include "controller/reservations/reservations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/compute/machine_pool.h"
#include "apis/placement.h"
#include "base/log.h"
#include "base/strings.h"
#include "controller/object_failure.h"
#include "controller/reservations/reservation_plan.h"
#include "rt/chaos.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

constexpr size_t kWorkers = 2;
// What is left of a time is written 20 times, but neither every moment nor too seldom: as much as
// that may be given away by a restart.
constexpr int64_t kWritesPerTime = 20;
constexpr Duration kWriteAtMostEvery = Duration::Seconds(1);
constexpr Duration kWriteAtLeastEvery = Duration::Minutes(1);

using Later = std::optional<Duration>;

std::string WordFor(const client::ObjectKey& key) { return key.namespace_ + '/' + key.name; }

client::WriteOptions StatusOptions() {
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  return options;
}

Duration PeriodOf(Duration ttl) {
  return std::clamp(ttl / kWritesPerTime, kWriteAtMostEvery, kWriteAtLeastEvery);
}

// In whole seconds, rounded up: a time that is not over is never written as none.
Duration ToSeconds(Duration left) {
  return Duration::Seconds((left + Duration::Millis(999)).seconds());
}

bool IsRunning(const Reservation& reservation) {
  const auto& placement = reservation.status.placement;
  return reservation.status.state == apis::core::kReservationAccepted && placement &&
         !placement->pool_uid.empty() && placement->release.empty();
}

// What was left when it was last written.
Duration RemainingOf(const Reservation& reservation, Duration ttl) {
  const Result<Duration> written = ParseDuration(reservation.status.remaining);
  return written.ok() ? std::min(*written, ttl) : ttl;
}

}  // namespace

void Reservations::Pools::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kBookmark) return;
  const bool is_gone = event.type == client::WatchEvent::Type::kDeleted;
  const bool is_new = is_gone ? labels_.erase(event.object.metadata().name) > 0 : Put(event.object);
  if (is_new) owner_.LookAtWholes();
}

bool Reservations::Pools::Put(const meta::Object& pool) {
  const auto [place, is_new] = labels_.try_emplace(pool.metadata().name, pool.metadata().labels);
  if (is_new) return true;
  if (place->second == pool.metadata().labels) return false;
  place->second = pool.metadata().labels;
  return true;
}

Reservations::Reservations(Deps deps)
    : loop_(deps.loop),
      client_(deps.client),
      binder_(deps.binder),
      events_(deps.loop, deps.client, deps.scheme, "berth-reservations"),
      runner_(deps.loop, "reservations", *this, kWorkers),
      reservations_(
          deps.loop,
          deps.client,
          kReservationKind,
          [this](const meta::Object* before, const meta::Object* now) { OnChange(before, now); }),
      pool_sink_(*this),
      pools_(deps.loop,
             deps.client,
             apis::compute::kMachinePoolKind,
             pool_sink_,
             client::ReflectorOptions{.namespace_ = "",
                                      .label_selector = "",
                                      .field_selector = "",
                                      .detail = client::Detail::kMetadata}) {}

rt::Task<Status> Reservations::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(reservations_.Run());
  tasks.push_back(pools_.Run());
  tasks.push_back(events_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void Reservations::OnChange(const meta::Object* before, const meta::Object* now) {
  const meta::Object& object = now != nullptr ? *now : *before;
  const meta::ObjectMeta& metadata = object.metadata();
  if (now == nullptr) {
    clocks_.erase(metadata.uid);
  } else {
    runner_.queue().Add(WordFor(client::KeyOf(object)));
  }
  const auto whole = metadata.labels.find(std::string(apis::core::kReservationOfLabel));
  if (whole == metadata.labels.end()) return;
  runner_.queue().Add(WordFor({.namespace_ = metadata.namespace_, .name = whole->second}));
}

void Reservations::LookAtWholes() {
  for (const auto& [key, object] : reservations_.objects()) {
    if (apis::core::IsForAll(object.as<Reservation>().spec)) runner_.queue().Add(WordFor(key));
  }
}

rt::Task<Result<std::optional<Duration>>> Reservations::Reconcile(std::string key) {
  const auto words = Split(key, '/');
  const client::ObjectKey name{.namespace_ = std::string(words[0]), .name = std::string(words[1])};
  Result<meta::Object> found = co_await client_.Get(kReservationKind, name);
  if (found.status().Is(Reason::kNotFound)) co_return Later();
  CO_TRY_STATUS(found);
  if (found->metadata().deletion_timestamp) co_return Later();
  if (apis::core::IsForAll(found->as<Reservation>().spec)) {
    co_return co_await KeepParts(*std::move(found));
  }
  co_return co_await KeepTime(*std::move(found));
}

rt::Task<Result<std::optional<Duration>>> Reservations::KeepTime(meta::Object object) {
  const auto& reservation = object.as<Reservation>();
  const std::optional<Duration> ttl = apis::core::TtlOf(reservation.spec);
  if (!ttl || !IsRunning(reservation)) co_return co_await Stop(std::move(object));
  const Time now = loop_.Now();
  const Duration written = RemainingOf(reservation, *ttl);
  const auto clock =
      clocks_.try_emplace(reservation.metadata.uid, Clock{.since = now, .left = written}).first;
  // Its owner may have given it less time meanwhile.
  const Duration left = std::min(clock->second.left - (now - clock->second.since), *ttl);
  if (left <= Duration()) {
    CO_TRY_STATUS(co_await Expire(std::move(object)));
    co_return Later();
  }
  const Duration period = PeriodOf(*ttl);
  if (reservation.status.remaining.empty() || written - left >= period) {
    CO_TRY_STATUS(co_await WriteRemaining(std::move(object), left));
  }
  co_return Later(std::min(left, period));
}

// Nobody keeps room for it, or not for long: its time stands still.
rt::Task<Result<std::optional<Duration>>> Reservations::Stop(meta::Object object) {
  const auto& reservation = object.as<Reservation>();
  const bool is_over = reservation.status.state == apis::core::kReservationExpired;
  const auto clock = clocks_.find(reservation.metadata.uid);
  if (clock != clocks_.end() && !is_over) {
    const Duration left =
        std::max(clock->second.left - (loop_.Now() - clock->second.since), Duration());
    CO_TRY_STATUS(co_await WriteRemaining(object, left));
  }
  clocks_.erase(object.metadata().uid);
  const auto& placement = object.as<Reservation>().status.placement;
  if (is_over || (placement && !placement->release.empty())) {
    CO_TRY_STATUS(co_await LetGo(std::move(object)));
  }
  co_return Later();
}

rt::Task<Status> Reservations::WriteRemaining(meta::Object object, Duration left) {
  std::string text = FormatDuration(ToSeconds(left));
  std::string& remaining = object.as<Reservation>().status.remaining;
  if (remaining == text) co_return OkStatus();
  remaining = std::move(text);
  const client::WriteOptions options = StatusOptions();
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  co_return written.status();
}

rt::Task<Status> Reservations::Expire(meta::Object object) {
  REACHED("reservations.expired");
  auto& status = object.as<Reservation>().status;
  status.state = apis::core::kReservationExpired;
  for (auto& pool : status.pools) pool.state = apis::core::kReservationExpired;
  status.remaining = FormatDuration(Duration());
  status.placement->release = apis::core::kReleaseExpired;
  const std::string text = "its time is over: the room is given back";
  apis::SetReleased(
      object, "True", std::string(apis::core::kReleaseExpired), text, loop_.WallNow());
  const client::EventSubject subject = client::EventSubject::Of(object);
  const client::WriteOptions options = StatusOptions();
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  CO_TRY_STATUS(written);
  events_.Record(subject, client::EventType::kNormal, "Expired", "Expiring", text);
  co_return OkStatus();
}

// Of one whose time is over, or that is to leave its pool. The gateway does it once a host has said
// that it keeps nothing any more; where there is no host to be asked, the room is only in our own
// books.
rt::Task<Status> Reservations::LetGo(meta::Object object) {
  if (!apis::IsBound(object)) co_return OkStatus();
  const auto& placement = *object.as<Reservation>().status.placement;
  const client::ObjectKey pool_key{.namespace_ = "", .name = placement.pool};
  const Result<meta::Object> pool = co_await client_.Get(apis::compute::kMachinePoolKind, pool_key);
  const bool is_there = pool.ok() && pool->metadata().uid == placement.pool_uid;
  if (!is_there || apis::PoolTermsOf(*pool).mode != apis::core::kPoolModeApi) co_return OkStatus();
  client::UnbindRequest request;
  request.kind = &kReservationKind;
  request.key = client::KeyOf(object);
  request.uid = object.metadata().uid;
  request.placement = placement.epoch;
  const bool is_over = object.as<Reservation>().status.state == apis::core::kReservationExpired;
  request.reason = is_over ? std::string(apis::core::kReleaseExpired) : placement.release;
  request.message = is_over ? "its time is over" : "it was to leave its pool";
  std::vector<client::UnbindRequest> requests;
  requests.push_back(std::move(request));
  const std::vector<Status> verdicts = co_await binder_.UnbindBatch(std::move(requests));
  co_return verdicts.front().Is(Reason::kConflict) ? OkStatus() : verdicts.front();
}

rt::Task<Result<std::optional<Duration>>> Reservations::KeepParts(meta::Object object) {
  // Without the whole picture parts would be made or deleted for nothing.
  if (!synced()) co_return Later(kWriteAtMostEvery);
  const Reservation whole = object.as<Reservation>();
  PartStates states;
  for (const auto& [pool, labels] : pool_sink_.all()) {
    if (IsForPool(whole, pool, labels)) states[pool];
  }
  std::vector<std::pair<client::ObjectKey, std::string>> surplus;
  const client::ObjectKey first{.namespace_ = whole.metadata.namespace_, .name = ""};
  for (auto at = reservations_.objects().lower_bound(first);
       at != reservations_.objects().end() && at->first.namespace_ == first.namespace_;
       ++at) {
    const auto& part = at->second.as<Reservation>();
    const auto& owners = part.metadata.owner_references;
    const bool is_mine = std::ranges::any_of(
        owners, [&whole](const auto& owner) { return owner.uid == whole.metadata.uid; });
    if (!is_mine || part.spec.pools.size() != 1) continue;
    const auto wanted = states.find(part.spec.pools.front());
    if (wanted == states.end() && !part.metadata.deletion_timestamp) {
      surplus.emplace_back(at->first, part.metadata.uid);
    } else if (wanted != states.end()) {
      wanted->second =
          part.status.state.empty() ? apis::core::kReservationPending : part.status.state;
    }
  }
  Later again;
  for (const auto& [key, uid] : surplus) {
    client::DeleteOptions options;
    options.uid = uid;
    const Status deleted = co_await client_.Delete(kReservationKind, key, options);
    if (IsObjectFailure(deleted)) {
      LOG_WARNING("reservation {}: its part {} stays: {}",
                  whole.metadata.name,
                  key.name,
                  deleted.ToString());
      again = kWriteAtLeastEvery;
      continue;
    }
    if (!deleted.ok() && !deleted.Is(Reason::kNotFound)) co_return deleted;
  }
  const client::WriteOptions plain;
  for (auto& [pool, state] : states) {
    if (!state.empty()) continue;
    state = apis::core::kReservationPending;
    meta::Object part = meta::Object::Of(kReservationKind, PartFor(whole, pool));
    const Result<meta::Object> made = co_await client_.Create(std::move(part), plain);
    if (made.ok() || made.status().Is(Reason::kAlreadyExists)) continue;
    if (!IsObjectFailure(made.status())) co_return made.status();
    // A quota, most likely: others may free some of it. Or a pool whose name no part can have.
    state = apis::core::kReservationRejected;
    again = kWriteAtLeastEvery;
    events_.Record(client::EventSubject::Of(object),
                   client::EventType::kWarning,
                   "PartNotMade",
                   "Reserving",
                   "pool " + pool + ": " + std::string(made.status().message()));
  }
  const meta::Object before = object;
  SumUp(states, loop_.WallNow(), object.as<Reservation>());
  if (object == before) co_return again;
  const client::WriteOptions options = StatusOptions();
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  CO_TRY_STATUS(written);
  co_return again;
}

}  // namespace berth::controller
