// SPDX-License-Identifier: Apache-2.0
#include "controller/host_drain/host_drain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"
#include "apis/core/reservation.h"
#include "apis/placement.h"
#include "base/strings.h"
#include "client/cache/reflector.h"
#include "client/cache/twins.h"
#include "client/release/release.h"
#include "controller/pool_guests/guest_follower.h"
#include "rt/chaos.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;
using apis::compute::MachinePoolCondition;
using apis::core::kReservationKind;

constexpr size_t kNamedMax = 5;  // of those who stay, in one message

// In the order in which they go, as `berth drain` has it.
constexpr std::array<const meta::KindInfo*, 2> kKinds = {&kMachineKind, &kReservationKind};

// "" if there is none.
std::string AnnotationOf(const meta::Object& pool, std::string_view name) {
  const auto& annotations = pool.metadata().annotations;
  const auto found = annotations.find(std::string(name));
  return found == annotations.end() ? std::string() : found->second;
}

// The request that is not over yet; "" if there is none. A new request asks everybody anew.
std::string RequestOf(const meta::Object& pool) {
  std::string request = AnnotationOf(pool, apis::core::kDrainRequestedAnnotation);
  const bool is_over = AnnotationOf(pool, apis::core::kDrainDoneAnnotation) == request;
  return is_over || pool.metadata().deletion_timestamp ? std::string() : request;
}

std::string Describe(std::vector<std::string> staying) {
  if (staying.empty()) return "everything has left";
  const size_t count = staying.size();
  if (count > kNamedMax) staying.resize(kNamedMax);
  return fmt::format("{} stay{} with the host: {}{}",
                     count,
                     count == 1 ? "s" : "",
                     Join(staying, "; "),
                     count > kNamedMax ? "; ..." : "");
}

bool SetDrained(MachinePool& pool, MachinePoolCondition wanted) {
  auto& conditions = pool.status.conditions;
  auto found = std::ranges::find_if(
      conditions, [](const auto& item) { return item.type == apis::core::kPoolDrained; });
  if (found == conditions.end()) found = conditions.emplace(conditions.end());
  const bool is_same = found->status == wanted.status && found->message == wanted.message;
  if (!is_same) *found = std::move(wanted);
  return !is_same;
}

}  // namespace

class HostDrain::Guests final : public GuestFollower {
 public:
  struct Guest {
    client::ObjectKey key;
    std::string pool_uid;
    int64_t placement = 0;
    bool is_leaving = false;  // asked by us or by others, or being deleted
    std::string tie;          // why it stays; "" unless it does
  };

  explicit Guests(Deps deps) : GuestFollower(std::move(deps)) {
    for (size_t i = 0; i < kKinds.size(); ++i) Follow(*kKinds[i], kinds_[i]);
  }
  std::map<std::string, Guest>& Of(const meta::KindInfo* kind) {
    return kind == kKinds[0] ? kinds_[0].guests : kinds_[1].guests;
  }

 private:
  struct Kind final : client::Sink {
    explicit Kind(Guests& the_owner) : owner(the_owner) {}

    // Who is not told yet in a list may be there all the same: nobody is taken for gone before its
    // end.
    void OnListBegin() override {
      unseen.clear();
      for (const auto& [uid, guest] : guests) unseen.insert(uid);
    }
    void OnListed(meta::Object object) override {
      if (client::IsTwin(guests, object)) return;
      unseen.erase(object.metadata().uid);
      Put(object);
    }
    void OnListEnd() override {
      for (const std::string& uid : std::exchange(unseen, {})) guests.erase(uid);
      owner.Wake();
    }
    void OnEvent(client::WatchEvent event) override {
      if (event.type == client::WatchEvent::Type::kBookmark) return;
      if (client::IsTwin(guests, event.object)) return;
      if (event.type == client::WatchEvent::Type::kDeleted) {
        guests.erase(event.object.metadata().uid);
      } else {
        Put(event.object);
      }
      owner.Wake();
    }
    void Put(const meta::Object& object) {
      const meta::ObjectMeta& metadata = object.metadata();
      const auto& placement = apis::PlacementOf(object);
      if (!placement || placement->pool_uid.empty()) {
        guests.erase(metadata.uid);
        return;
      }
      Guest& guest = guests[metadata.uid];
      if (guest.placement != placement->epoch) guest = Guest();
      guest.key = client::KeyOf(object);
      guest.pool_uid = placement->pool_uid;
      guest.placement = placement->epoch;
      if (!placement->release.empty() || metadata.deletion_timestamp) guest.is_leaving = true;
    }

    Guests& owner;
    std::map<std::string, Guest> guests;  // by UID
    std::set<std::string> unseen;         // during a list
  };

  std::array<Kind, kKinds.size()> kinds_{Kind(*this), Kind(*this)};
};

HostDrain::HostDrain(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      events_(loop, client, scheme, "berth-lifecycle"),
      leaver_(loop, client, events_),
      guests_(loop, client, "host drain", *this, RequestOf) {}

HostDrain::~HostDrain() = default;

rt::Task<Status> HostDrain::Run() { return guests_.Run(events_.Run()); }

void HostDrain::Report(client::HealthReport& report) const {
  guests_.Report(report);
  events_.Report(report);
}

rt::Task<Result<std::optional<Duration>>> HostDrain::Reconcile(std::string pool) {
  const meta::Object* object = guests_.FindSynced(pool);
  if (object == nullptr) co_return std::optional<Duration>();
  const auto& agent = object->as<MachinePool>().status.agent;
  const Order order{.pool = pool,
                    .pool_uid = object->metadata().uid,
                    .mode = agent ? agent->mode : std::string(),
                    .request = RequestOf(*object)};
  if (order.request.empty()) co_return std::optional<Duration>();
  for (const meta::KindInfo* kind : kKinds) {
    CO_TRY(const bool is_done, co_await SendAway(order, kind));
    if (!is_done) co_return std::optional<Duration>();  // their own changes come back here
  }
  CO_TRY_STATUS(co_await Finish(order));
  co_return std::optional<Duration>();
}

rt::Task<Result<bool>> HostDrain::SendAway(Order order, const meta::KindInfo* kind) {
  std::vector<client::ReleaseRequest> due;
  Guests* guests = guests_.Find(order.pool);
  if (guests == nullptr) co_return false;  // the host is back
  for (const auto& [uid, guest] : guests->Of(kind)) {
    if (guest.pool_uid != order.pool_uid || guest.is_leaving || !guest.tie.empty()) continue;
    due.push_back({.kind = kind,
                   .key = guest.key,
                   .uid = uid,
                   .placement = guest.placement,
                   .reason = std::string(apis::core::kReleaseDrain),
                   .message = "the host of pool " + order.pool + " leaves"});
  }
  Status failure;  // of one of them: the others are asked all the same
  for (client::ReleaseRequest& request : due) {
    const std::string uid = request.uid;
    const int64_t placement = request.placement;
    Result<Departure> asked = co_await leaver_.Ask(std::move(request), order.mode);
    if (asked.status().Is(Reason::kCancelled)) co_return asked.status();
    if (!asked.ok()) {
      failure = asked.status();
      continue;
    }
    Departure departure = *std::move(asked);
    guests = guests_.Find(order.pool);
    if (guests == nullptr) co_return false;
    const auto guest = guests->Of(kind).find(uid);
    if (guest == guests->Of(kind).end() || guest->second.placement != placement) continue;
    if (departure.outcome == Departure::Outcome::kStays) {
      REACHED("host_drain.stays");
      guest->second.tie = std::move(departure.tie);
    } else {
      REACHED("host_drain.released");
      guest->second.is_leaving = true;
    }
  }
  CO_TRY_STATUS(failure);
  guests = guests_.Find(order.pool);
  if (guests == nullptr) co_return false;
  co_return std::ranges::all_of(guests->Of(kind), [&](const auto& entry) {
    const Guests::Guest& guest = entry.second;
    return guest.pool_uid != order.pool_uid || (!guest.tie.empty() && !guest.is_leaving);
  });
}

// The word that lets the host go comes last: whoever reads it finds out who stayed.
rt::Task<Status> HostDrain::Finish(Order order) {
  std::vector<std::string> staying;
  Guests* guests = guests_.Find(order.pool);
  if (guests == nullptr) co_return OkStatus();
  for (const meta::KindInfo* kind : kKinds) {
    for (const auto& [uid, guest] : guests->Of(kind)) {
      if (guest.pool_uid != order.pool_uid) continue;
      staying.push_back(fmt::format(
          "{} {}/{}, {}", kind->singular, guest.key.namespace_, guest.key.name, guest.tie));
    }
  }
  CO_TRY_STATUS(co_await SayDrained(order, staying));
  const client::ObjectKey key{.namespace_ = "", .name = order.pool};
  auto pool = co_await client_.Get(kMachinePoolKind, key);
  if (pool.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(pool);
  if (pool->metadata().uid != order.pool_uid || RequestOf(*pool) != order.request) {
    co_return OkStatus();
  }
  pool->metadata().annotations[std::string(apis::core::kDrainDoneAnnotation)] = order.request;
  const client::WriteOptions options;
  CO_TRY_STATUS(co_await client_.Update(*std::move(pool), options));  // a conflict is tried again
  REACHED("host_drain.done");
  events_.Record({.kind = &kMachinePoolKind, .key = key, .uid = order.pool_uid},
                 staying.empty() ? client::EventType::kNormal : client::EventType::kWarning,
                 "Drained",
                 "Draining",
                 "its host leaves: " + Describe(staying));
  co_return OkStatus();
}

rt::Task<Status> HostDrain::SayDrained(Order order, std::vector<std::string> staying) {
  const client::ObjectKey key{.namespace_ = "", .name = order.pool};
  auto pool = co_await client_.Get(kMachinePoolKind, key);
  if (pool.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(pool);
  if (pool->metadata().uid != order.pool_uid || RequestOf(*pool) != order.request) {
    co_return OkStatus();
  }
  MachinePoolCondition condition;
  condition.type = apis::core::kPoolDrained;
  condition.status = staying.empty() ? "True" : "False";
  condition.reason = staying.empty() ? "Empty" : "SomeStay";
  condition.message = Describe(std::move(staying));
  condition.last_transition_time = WallTime::FromSeconds(loop_.WallNow().seconds());
  if (!SetDrained(pool->as<MachinePool>(), std::move(condition))) co_return OkStatus();
  const client::WriteOptions options{.subresource = client::Subresource::kStatus};
  co_return (co_await client_.Update(*std::move(pool), options)).status();
}

}  // namespace berth::controller
