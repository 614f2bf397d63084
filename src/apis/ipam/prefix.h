// SPDX-License-Identifier: Apache-2.0
// Prefix: a range of IP addresses. A root prefix states its range; a child gets one out of its
// parent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::ipam {

inline constexpr std::string_view kPhasePending = "Pending";
inline constexpr std::string_view kPhaseAllocated = "Allocated";
inline constexpr std::string_view kPhaseFailed = "Failed";  // PrefixAllocation only

struct PrefixSpec {
  std::string ip_family;
  std::optional<meta::IpPrefix> prefix;
  int32_t prefix_length = 0;
  std::optional<core::LocalObjectReference> parent_ref;
  std::optional<meta::LabelSelector> parent_selector;
  bool operator==(const PrefixSpec&) const = default;
};
BERTH_DESCRIBE(PrefixSpec,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixSpec",
               "Which range is wanted, and from where.",
               BERTH_FIELD(ip_family,
                           "ipFamily",
                           "IPv4 or IPv6; taken from prefix when that is given.",
                           {.values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(prefix, "prefix", "The range. Set once, by the user or the allocator."),
               BERTH_FIELD(prefix_length,
                           "prefixLength",
                           "How large a range to take from the parent, as a prefix length."),
               BERTH_FIELD(parent_ref, "parentRef", "The prefix to take the range from. Set once."),
               BERTH_FIELD(parent_selector,
                           "parentSelector",
                           "Which prefixes may become the parent, by label."))

struct PrefixStatus {
  std::string phase;
  WallTime last_phase_transition_time;
  std::vector<meta::IpPrefix> used;
};
BERTH_DESCRIBE(PrefixStatus,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixStatus",
               "What became of the request for a range.",
               BERTH_FIELD(phase,
                           "phase",
                           "Pending until the range is reserved, then Allocated for good.",
                           {.values = {"Pending", "Allocated"}, .fallback = "\"Pending\""}),
               BERTH_FIELD(last_phase_transition_time,
                           "lastPhaseTransitionTime",
                           "When phase last changed."),
               BERTH_FIELD(used, "used", "Parts of the range that children hold."))

struct Prefix {
  meta::ObjectMeta metadata;
  PrefixSpec spec;
  PrefixStatus status;
};
BERTH_DESCRIBE(Prefix,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.Prefix",
               "A range of IP addresses, stated or taken from a larger one.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The range wanted."),
               BERTH_FIELD(status, "status", "The range as it is; written by the system."))

struct PrefixTemplateSpec {
  meta::ObjectMeta metadata;
  PrefixSpec spec;
};
BERTH_DESCRIBE(PrefixTemplateSpec,
               "com.github.ironcore-dev.ironcore.api.ipam.v1alpha1.PrefixTemplateSpec",
               "What a generated Prefix looks like.",
               BERTH_FIELD(metadata, "metadata", "Labels and annotations of the Prefix."),
               BERTH_FIELD(spec, "spec", "Spec of the Prefix."))

extern const meta::KindInfo kPrefixKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Prefix>) { return kPrefixKind; }

// Takes ipFamily from prefix where that is given.
void SetPrefixSpecDefaults(PrefixSpec& spec);
void CheckPrefixSpec(const PrefixSpec& spec,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors);
// The same for a prefix made from a template, at path.metadata and path.spec.
void CheckPrefixTemplate(const PrefixTemplateSpec& prefix_template,
                         const meta::FieldPath& path,
                         meta::FieldErrors& errors);
// "IPv4" or "IPv6".
std::string_view FamilyOf(const meta::IpPrefix& prefix);
std::string_view FamilyOf(const meta::IpAddress& address);

}  // namespace berth::apis::ipam
