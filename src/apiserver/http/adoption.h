// SPDX-License-Identifier: Apache-2.0
// Creates that ask to take over what a host has already (apis/adoption.h): who may, and whether the
// host has it.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "base/status.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::apiserver {

class Adoption {
 public:
  struct Deps {
    Registry& registry;
    const Authorizer& authorizer;
    const Hosts& hosts;
  };
  explicit Adoption(Deps deps) : deps_(deps) {}

  // Takes the annotation off the object and says in the context what it is to become. Ok for an
  // object that asks for nothing. Forbidden without the verb `adopt` on the pool; NotFound if the
  // pool's host shows no such orphan: kind, namespace, name and UID must all be its own. Both live
  // until it ends.
  rt::Task<Status> Admit(CallPtr call, meta::Object* object, WriteContext* context) const;

 private:
  const Deps deps_;
};

}  // namespace berth::apiserver
