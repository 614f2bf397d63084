// SPDX-License-Identifier: Apache-2.0
// Lease: who holds something, and until when. Leaders are elected with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "meta/kind.h"

namespace berth::apis::k8s {

struct LeaseSpec {
  std::optional<std::string> holder_identity;
  std::optional<int32_t> lease_duration_seconds;
  std::optional<meta::MicroTime> acquire_time;
  std::optional<meta::MicroTime> renew_time;
  std::optional<int32_t> lease_transitions;
  bool operator==(const LeaseSpec&) const = default;
};
BERTH_DESCRIBE(LeaseSpec,
               "io.k8s.api.coordination.v1.LeaseSpec",
               "Who holds the lease, and until when.",
               BERTH_FIELD(holder_identity, "holderIdentity", "Who holds the lease."),
               BERTH_FIELD(lease_duration_seconds,
                           "leaseDurationSeconds",
                           "How long after renewTime others must wait."),
               BERTH_FIELD(acquire_time, "acquireTime", "When the holder got the lease."),
               BERTH_FIELD(renew_time, "renewTime", "When the holder last renewed it."),
               BERTH_FIELD(lease_transitions,
                           "leaseTransitions",
                           "How often the lease went to another holder."))

struct Lease {
  meta::ObjectMeta metadata;
  LeaseSpec spec;
};
BERTH_DESCRIBE(Lease,
               "io.k8s.api.coordination.v1.Lease",
               "Who holds something, and until when.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "Holder and times."))

extern const meta::KindInfo kLeaseKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Lease>) { return kLeaseKind; }

}  // namespace berth::apis::k8s
