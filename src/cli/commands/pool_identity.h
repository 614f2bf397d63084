// SPDX-License-Identifier: Apache-2.0
// Who the poollet of a pool is that uses the API: the user that its certificate names, and the wide
// rights that an operator may have given it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/status.h"
#include "cli/api/api.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"

namespace berth::cli {

// "compute.ironcore.dev:system:machinepool:alpha".
std::string UserOf(const Target& pool);

inline constexpr std::string_view kBindingsPath =
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
// The binding that gives it wide rights.
std::string LegacyBindingOf(const Target& pool);
// False if there is none.
Result<bool> DropLegacyBinding(Api& api, const Target& pool);

// Certificates of the pool's user are void from now on, and it has no wide rights any more. Says
// what was done.
Status LockOut(Session& session, const Target& pool);

}  // namespace berth::cli
