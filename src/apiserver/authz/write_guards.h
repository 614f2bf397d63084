// SPDX-License-Identifier: Apache-2.0
// Rights that depend on what is written, for whoever brings writes of others to the registry.
#pragma once

#include <functional>

#include "apiserver/authz/authorizer.h"
#include "apiserver/identity.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// As registry.h's WriteContext wants them.
struct WriteGuards {
  std::function<Status(const meta::Object* before, const meta::Object& after)> write;
  std::function<Status(const meta::Object& object)> force;
};

// The authorizer outlives the guards. REQUIRES: it allows the request.
WriteGuards GuardsFor(const Authorizer& authorizer,
                      const Identity& identity,
                      const RequestInfo& request);

}  // namespace berth::apiserver
