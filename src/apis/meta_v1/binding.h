// SPDX-License-Identifier: Apache-2.0
// The bodies of the subresource `binding`: what is to be bound where, and why a binding may end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "meta/type.h"

namespace berth::apis::meta_v1 {

inline constexpr std::string_view kBindingApiVersion = "berth.dev/v1alpha1";
inline constexpr std::string_view kBindingKind = "Binding";

struct BindingItem {
  std::string kind;
  std::string name;
  std::string uid;
  int64_t generation = 0;
  int64_t placement = 0;
  std::string pool;
  std::string pool_uid;
  std::map<std::string, int64_t> amounts;
  std::string reservation;
  std::string reservation_uid;
  bool operator==(const BindingItem&) const = default;
};
BERTH_DESCRIBE(
    BindingItem,
    "dev.berth.api.v1alpha1.BindingItem",
    "One object and its pool.",
    BERTH_FIELD(kind, "kind", "Machine, Volume, Bucket or Reservation.", {.required = true}),
    BERTH_FIELD(name, "name", "Name of the object.", {.required = true}),
    BERTH_FIELD(uid, "uid", "UID of the object.", {.required = true}),
    BERTH_FIELD(generation, "generation", "Generation that was decided on.", {.required = true}),
    BERTH_FIELD(placement,
                "placement",
                "status.placement.epoch as it was decided on; it becomes one more."),
    BERTH_FIELD(pool, "pool", "Name of the pool.", {.required = true}),
    BERTH_FIELD(pool_uid, "poolUID", "UID of the pool.", {.required = true}),
    BERTH_FIELD(amounts,
                "amounts",
                "What it takes of the pool: cpu in thousandths, all else in units."),
    BERTH_FIELD(reservation, "reservation", "Name of the reservation whose room it uses."),
    BERTH_FIELD(reservation_uid, "reservationUID", "UID of that reservation."))

// POST .../binding. The first item is the object of the path; all are of its namespace, and are
// bound together or not at all.
struct Binding {
  std::string api_version;
  std::string kind;
  std::string holder;
  int64_t term = 0;
  std::vector<BindingItem> items;
  bool operator==(const Binding&) const = default;
};
BERTH_DESCRIBE(
    Binding,
    "dev.berth.api.v1alpha1.Binding",
    "Objects that get their pools together or not at all.",
    BERTH_FIELD(api_version, "apiVersion", "berth.dev/v1alpha1."),
    BERTH_FIELD(kind, "kind", "Binding."),
    BERTH_FIELD(holder, "holder", "Who holds the scheduler's Lease.", {.required = true}),
    BERTH_FIELD(term, "term", "leaseTransitions of that Lease."),
    BERTH_FIELD(items, "items", "The object of the path, and what is bound with it."))

inline constexpr std::string_view kProofHostReleased = "HostReleased";
inline constexpr std::string_view kProofFenced = "Fenced";
inline constexpr std::string_view kProofOperatorFenced = "OperatorFenced";
inline constexpr std::string_view kProofNeverBound = "NeverBound";

// DELETE .../binding.
struct Unbinding {
  std::string api_version;
  std::string kind;
  std::string uid;
  int64_t placement = 0;
  std::string proof;
  std::string reason;
  std::string message;
  bool operator==(const Unbinding&) const = default;
};
BERTH_DESCRIBE(
    Unbinding,
    "dev.berth.api.v1alpha1.Unbinding",
    "Why an object loses its pool.",
    BERTH_FIELD(api_version, "apiVersion", "berth.dev/v1alpha1."),
    BERTH_FIELD(kind, "kind", "Binding."),
    BERTH_FIELD(uid, "uid", "UID of the object.", {.required = true}),
    BERTH_FIELD(placement, "placement", "status.placement.epoch; it becomes one more."),
    BERTH_FIELD(proof,
                "proof",
                "How it is known that the host does not run it.",
                {.required = true,
                 .values = {"HostReleased", "Fenced", "OperatorFenced", "NeverBound"}}),
    BERTH_FIELD(reason, "reason", "One word, of the condition Scheduled.", {.required = true}),
    BERTH_FIELD(message, "message", "A sentence for people."))

}  // namespace berth::apis::meta_v1
