// SPDX-License-Identifier: Apache-2.0
// What a pool's identity may do over the API, beyond roles: one authorizer for both doors, session
// and API. The identity compute.ironcore.dev:system:machinepool:NAME, in the group
// compute.ironcore.dev:system:machinepools, and the like for volume and bucket pools
// (client/certificates/pool_names.h), may
//
//   read    its pool, what is bound to it, what that names but for the machine that claims it, and
//           all classes
//   write   status and finalizers of its pool and of what is bound to it; the status of network
//           interfaces that its machines name; its Lease; new events about what it may read;
//           requests for its own next certificate
//   list    and watch by name, or what is bound by spec.machinePoolRef.name=NAME
//
// and nothing of any other pool: a host that was broken into is worth itself only. Whoever needs
// more gets it by a role, which an operator grants and everybody sees.
#pragma once

#include <optional>
#include <string>

#include "apiserver/identity.h"
#include "apiserver/pool_objects.h"
#include "base/status.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

struct PoolIdentity {
  const meta::KindInfo* pool_kind = nullptr;
  const meta::KindInfo* object_kind = nullptr;  // of what is bound to it
  std::string pool;
};
// Nullopt if the identity is no pool's. Name and group must agree.
std::optional<PoolIdentity> PoolIdentityOf(const meta::Scheme& scheme, const Identity& identity);

class PoolAuthorizer {
 public:
  // Both outlive the authorizer.
  PoolAuthorizer(const meta::Scheme& scheme, const PoolObjects& objects)
      : scheme_(scheme), objects_(objects) {}

  bool Allows(const Identity& identity, const RequestInfo& request) const;
  // Whether a write that roles do not grant stays within what a pool may write: `before` is null
  // for a new object. A write to status has been cut down to the status already.
  Status CheckWrite(const PoolIdentity& who,
                    const meta::Object* before,
                    const meta::Object& after) const;

 private:
  const meta::KindInfo* KindOf(const RequestInfo& request) const;
  bool AllowsOwnPool(const PoolIdentity& who, const RequestInfo& request) const;
  bool AllowsRenewal(const Identity& identity, const RequestInfo& request) const;
  bool AllowsObject(const PoolIdentity& who, const RequestInfo& request) const;
  bool AllowsSnapshot(const PoolIdentity& who, const RequestInfo& request) const;
  bool AllowsReferenced(const PoolIdentity& who,
                        const meta::KindInfo& kind,
                        const RequestInfo& request) const;
  bool IsOn(const PoolIdentity& who, const meta::Object& object) const;
  // Events are about the pool itself, what is on it, and what that names.
  Status CheckEvent(const PoolIdentity& who, const meta::Object& event) const;
  bool IsNamed(const PoolIdentity& who,
               const meta::KindInfo& kind,
               const client::ObjectKey& key) const;

  const meta::Scheme& scheme_;
  const PoolObjects& objects_;
};

}  // namespace berth::apiserver
