// SPDX-License-Identifier: Apache-2.0
#include "apis/core/reservation.h"

#include <algorithm>

#include "apis/core/rules.h"

namespace berth::apis::core {
namespace {

void CheckPools(const ReservationSpec& spec, meta::FieldErrors& errors) {
  const meta::FieldPath path = SpecPath().Child("pools");
  if (spec.pools.size() > kReservationPoolsMax) {
    errors.TooMany(path, spec.pools.size(), kReservationPoolsMax);
  }
  UniqueNames unique;
  for (size_t i = 0; i < spec.pools.size(); ++i) {
    CheckSubdomainName(spec.pools[i], path.Index(i), errors);
    unique.Check(spec.pools[i], path.Index(i), errors);
  }
}

void Validate(const Reservation& object, meta::FieldErrors& errors) {
  const meta::FieldPath path = SpecPath();
  const ReservationSpec& spec = object.spec;
  CheckPools(spec, errors);
  CheckSources(int{!spec.resources.empty()} + int{spec.class_ref.has_value()},
               path,
               "resources or classRef",
               errors);
  for (const auto& [name, amount] : spec.resources) {
    CheckPositive(amount, path.Child("resources").Key(name), errors);
  }
  CheckReference(spec.class_ref, path.Child("classRef"), errors);
  CheckReference(spec.machine_pool_ref, path.Child("machinePoolRef"), errors);
  if (IsForAll(spec) && spec.machine_pool_ref) {
    errors.Forbidden(path.Child("machinePoolRef"), "one of mode All is on no pool itself");
  }
  const size_t name_bytes = object.metadata.name.size();
  if (IsForAll(spec) && name_bytes > kWholeNameMax) {
    errors.TooLong(meta::FieldPath("metadata").Child("name"), name_bytes, kWholeNameMax);
  }
  CheckLabels(spec.selector, path.Child("selector"), errors);
  const int32_t count = spec.count.value_or(1);
  if (count < 1 || count > kReservationCountMax) {
    errors.Invalid(path.Child("count"),
                   int64_t{count},
                   "must be from 1 to " + std::to_string(kReservationCountMax));
  }
  if (spec.ttl.empty()) return;
  const Result<Duration> ttl = ParseDuration(spec.ttl);
  if (!ttl.ok() || *ttl < kReservationTtlMin || *ttl > kReservationTtlMax) {
    errors.Invalid(path.Child("ttl"), spec.ttl, "must be a duration from 1s to a year, such as 1h");
  }
}

void ValidateUpdate(const Reservation& now, const Reservation& before, meta::FieldErrors& errors) {
  const meta::FieldPath path = SpecPath();
  CheckImmutable(now.spec.resources, before.spec.resources, path.Child("resources"), errors);
  CheckImmutable(now.spec.class_ref, before.spec.class_ref, path.Child("classRef"), errors);
  CheckImmutable(now.spec.mode, before.spec.mode, path.Child("mode"), errors);
  CheckImmutable(CountOf(now.spec), CountOf(before.spec), path.Child("count"), errors);
  CheckSetOnce(now.spec.machine_pool_ref,
               before.spec.machine_pool_ref,
               path.Child("machinePoolRef"),
               errors);
}

void ValidateStatusUpdate(const Reservation& now,
                          const Reservation& /*before*/,
                          meta::FieldErrors& errors) {
  CheckConditions(now.status.conditions, StatusPath().Child("conditions"), errors);
}

std::string StateCell(const Reservation& object) { return OrUnknown(object.status.state); }
std::string PoolCell(const Reservation& object) {
  if (object.spec.machine_pool_ref) return object.spec.machine_pool_ref->name;
  std::string names;
  for (const ReservationPool& pool : object.status.pools) {
    if (pool.state != kReservationAccepted && pool.state != kReservationBound) continue;
    names += (names.empty() ? "" : ",") + pool.name;
  }
  return OrNone(names);
}
std::string CountCell(const Reservation& object) { return std::to_string(CountOf(object.spec)); }
std::string LeftCell(const Reservation& object) { return std::to_string(LeftOf(object)); }

constexpr meta::Column kColumns[] = {
    {.name = "State", .doc = "How far it is.", .cell = meta::Hook<&StateCell>},
    {.name = "Pool", .doc = "Who keeps the room.", .cell = meta::Hook<&PoolCell>},
    {.name = "Count",
     .type = "integer",
     .doc = "For how many machines.",
     .cell = meta::Hook<&CountCell>},
    {.name = "Left",
     .type = "integer",
     .doc = "For how many it still is.",
     .cell = meta::Hook<&LeftCell>},
};

constexpr std::string_view kSubresources[] = {"binding"};
constexpr std::string_view kSelectors[] = {
    "spec.classRef.name", "spec.machinePoolRef.name", "status.placement.poolUID"};

}  // namespace

bool IsForAll(const ReservationSpec& spec) { return spec.mode == kReserveAll; }

// Somebody may have written anything into the store, and there is an entry for each.
int32_t CountOf(const ReservationSpec& spec) {
  return std::clamp(spec.count.value_or(1), 0, kReservationCountMax);
}

int32_t LeftOf(const Reservation& reservation) {
  const auto used = static_cast<int32_t>(reservation.status.consumers.size());
  return std::max(0, CountOf(reservation.spec) - used);
}

bool IsNamedBy(const Reservation& reservation, std::string_view reservation_ref) {
  if (reservation.metadata.name == reservation_ref) return true;
  const auto whole = reservation.metadata.labels.find(std::string(kReservationOfLabel));
  return whole != reservation.metadata.labels.end() && whole->second == reservation_ref;
}

void BecomeRejected(Reservation& reservation) {
  ReservationStatus& status = reservation.status;
  if (!status.state.empty() && status.state != kReservationPending) return;
  status.state = kReservationRejected;
  status.pools.clear();
  for (const std::string& name : reservation.spec.pools) {
    status.pools.push_back({.name = name, .state = std::string(kReservationRejected)});
  }
}

std::optional<Duration> TtlOf(const ReservationSpec& spec) {
  if (spec.ttl.empty()) return std::nullopt;
  const Result<Duration> ttl = ParseDuration(spec.ttl);
  if (!ttl.ok()) return std::nullopt;
  return std::min(*ttl, kReservationTtlMax);
}

constinit const meta::KindInfo kReservationKind = {
    .group = "core",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Reservation",
    .plural = "reservations",
    .singular = "reservation",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Reservation>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::core
