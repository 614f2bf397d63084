// SPDX-License-Identifier: Apache-2.0
// Taints that not everybody may tolerate (ADR 0051). A pool that is kept for some has a taint of
// the domain restricted.berth.dev; a machine, a set's template, a volume, a bucket or the template
// of a machine's volume that names it needs the verb `tolerate` on the taint. Tolerating every key
// does not cover it (apis/core/taints.h), and so needs no right.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "apiserver/identity.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// Whether the identity may tolerate what `after` tolerates and `before` does not; `before` is null
// for a new object. Ok for kinds that tolerate nothing.
Status CheckRestrictedTaints(const Authorizer& authorizer,
                             const Identity& identity,
                             const meta::Object* before,
                             const meta::Object& after);

}  // namespace berth::apiserver
