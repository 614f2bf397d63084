// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/scheduler_term.h"

#include "apis/k8s/lease.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"

namespace berth::apiserver {

Result<store::Condition> SchedulerTerm::Check(const std::string& holder, int64_t term) {
  const ObjectKey key{.namespace_ = std::string(kSystemNamespace),
                      .name = std::string(kSchedulerLease)};
  const StoredObject* stored = cache_.Of(apis::k8s::kLeaseKind).Find(KeySuffix(key));
  if (stored == nullptr) return Conflict("lease " + KeySuffix(key) + ": nobody holds it");
  if (stored->revision != read_at_) {
    TRY(const meta::Object lease, Decode(apis::k8s::kLeaseKind, *stored));
    const auto& spec = lease.as<apis::k8s::Lease>().spec;
    holder_ = spec.holder_identity.value_or("");
    transitions_ = spec.lease_transitions.value_or(0);
    read_at_ = stored->revision;
  }
  if (holder.empty() || holder != holder_ || term != transitions_) {
    return Conflict("lease " + KeySuffix(key) + " is held by " + Quote(holder_) + " in term " +
                    std::to_string(transitions_) + ", not by " + Quote(holder) + " in term " +
                    std::to_string(term));
  }
  return store::Condition::Unchanged(StoreKey(apis::k8s::kLeaseKind, key), stored->revision);
}

}  // namespace berth::apiserver
