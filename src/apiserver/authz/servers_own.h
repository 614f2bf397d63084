// SPDX-License-Identifier: Apache-2.0
// Records of berth-system that the server itself lives by: who and which hosts are revoked, the
// authority, the cluster's identity and its brake on mass losses, the keys of each host, the tokens
// that hosts join with, and the Leases by which servers and schedulers are elected. Whoever may
// write every ConfigMap, Secret or Lease (edit, bound in the cluster) must not be able to take a
// revocation back, to retire the authority, to become a host or to depose a leader: that needs the
// verb `administer` on the record, which cluster-admin has with all verbs, and berth:scheduler for
// the scheduler's Lease.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "apiserver/identity.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// Whether a write may be tried: Forbidden for a change or deletion of such a record, and for the
// deletion of a collection that may have one, without the right.
Status CheckServersOwn(const Authorizer& authorizer,
                       const Identity& identity,
                       const RequestInfo& request);
// The same for a new object, whose name only its body has.
Status CheckNewServersOwn(const Authorizer& authorizer,
                          const Identity& identity,
                          const meta::Object& object);
// Whether the identity may write the object of berth-system whatever its name is.
Status CheckAdministers(const Authorizer& authorizer,
                        const Identity& identity,
                        const meta::Object& object);

}  // namespace berth::apiserver
