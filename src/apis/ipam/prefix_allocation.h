// SPDX-License-Identifier: Apache-2.0
// PrefixAllocation: a request for a part of a Prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::ipam {

struct PrefixAllocationSpec {
  std::string ip_family;
  std::optional<meta::IpPrefix> prefix;
  int32_t prefix_length = 0;
  std::optional<core::LocalObjectReference> prefix_ref;
  std::optional<meta::LabelSelector> prefix_selector;
  bool operator==(const PrefixAllocationSpec&) const = default;
};
BERTH_DESCRIBE(PrefixAllocationSpec,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixAllocationSpec",
               "How much is wanted, and from where.",
               BERTH_FIELD(ip_family,
                           "ipFamily",
                           "IPv4 or IPv6; taken from prefix when that is given.",
                           {.values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(prefix, "prefix", "Exactly this range."),
               BERTH_FIELD(prefix_length, "prefixLength", "Any range of this length."),
               BERTH_FIELD(prefix_ref, "prefixRef", "The Prefix to take the range from. Set once."),
               BERTH_FIELD(prefix_selector,
                           "prefixSelector",
                           "Which Prefixes may give the range, by label."))

struct PrefixAllocationStatus {
  std::optional<meta::IpPrefix> prefix;
  std::string phase;
  WallTime last_phase_transition_time;
  bool operator==(const PrefixAllocationStatus&) const = default;
};
BERTH_DESCRIBE(
    PrefixAllocationStatus,
    "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixAllocationStatus",
    "What became of the request.",
    BERTH_FIELD(prefix, "prefix", "The range that was found."),
    BERTH_FIELD(phase,
                "phase",
                "Pending, then Allocated or Failed for good.",
                {.values = {"Pending", "Allocated", "Failed"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(last_phase_transition_time, "lastPhaseTransitionTime", "When phase last changed."))

struct PrefixAllocation {
  meta::ObjectMeta metadata;
  PrefixAllocationSpec spec;
  PrefixAllocationStatus status;
};
BERTH_DESCRIBE(PrefixAllocation,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixAllocation",
               "A request for a part of a Prefix.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The part wanted."),
               BERTH_FIELD(status, "status", "The part found; written by the system."))

extern const meta::KindInfo kPrefixAllocationKind;
inline const meta::KindInfo& BerthKind(meta::Tag<PrefixAllocation>) {
  return kPrefixAllocationKind;
}

}  // namespace berth::apis::ipam
