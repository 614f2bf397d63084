// SPDX-License-Identifier: Apache-2.0
// Writes that could give their sender rights. Whoever may write a role, a binding or a token must
// not become more powerful by it:
//
//   Role, ClusterRole    all of its rights are held already, or verb `escalate` on it
//   bindings             all rights of the role are held already, or verb `bind` on the role
//   token Secret         verb `impersonate` on its user and on each of its groups
//   join-token Secret    verb `administer` on it (servers_own.h): it makes any host of its holder
//   pool reference       of a machine, volume or bucket, or of the template of a machine's volume:
//                        verb `bind` on the pool; otherwise any tenant picks hosts
//   restricted taint     of whatever tolerates it: verb `tolerate` on it (restricted_taints.h)
//   priority class       of a machine or a set's template: verb `use` on the class; otherwise any
//                        tenant is the most important one
//   placement finalizer  verb `fence` on the pool: whoever removes it says that the host is off
//
// These are checked in addition to the right to write the object at all, on create, update and
// patch; deleting takes rights away and needs no check here. system:masters passes everywhere.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authz/authorizer.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// `key` names the role; an empty namespace means ClusterRole. A role that aggregates others may
// come to hold anything, so writing it needs every right there is.
Status CheckRoleWrite(const Authorizer& authorizer,
                      const Identity& identity,
                      const PolicyKey& key,
                      const RolePolicy& policy);

// NotFound if the role does not exist and the identity may not bind it regardless.
Status CheckBindingWrite(const Authorizer& authorizer,
                         const Identity& identity,
                         const PolicyKey& key,
                         const Binding& binding);

// `data` is the Secret's, with stringData merged in. BadRequest if it is not a valid token: nobody
// could say whom it stands for.
Status CheckTokenWrite(const Authorizer& authorizer,
                       const Identity& identity,
                       std::string_view name,
                       const std::map<std::string, std::string>& data);

// Whether the identity may set the pool of the object, or of volumes that are made for it, if it is
// about to.
Status CheckPoolChoice(const Authorizer& authorizer,
                       const Identity& identity,
                       const meta::Object* before,
                       const meta::Object& after);

// Whether the identity may use the priority class that the machine or set is about to name.
Status CheckPriorityChoice(const Authorizer& authorizer,
                           const Identity& identity,
                           const meta::Object* before,
                           const meta::Object& after);

// Whether the identity may remove an object that its pool may still run: deletion by force.
Status CheckLettingGo(const Authorizer& authorizer,
                      const Identity& identity,
                      const meta::Object& object);

// The checks above for an object of any kind, as registry.h's WriteContext::guard wants it:
// `before` is null for a new object. Ok for objects that give no rights, and for updates that only
// let go of one (finalizers and owners).
Status CheckPrivilegedWrite(const Authorizer& authorizer,
                            const Identity& identity,
                            const meta::Object* before,
                            const meta::Object& after);

}  // namespace berth::apiserver
