// SPDX-License-Identifier: Apache-2.0
// The names of what quotas limit. A quota may name a group through any served domain, in any
// spelling: "count/machines.compute.OpenKCM.dev" limits the same as
// "count/machines.compute.ironcore.dev". Quotas keep the spelling that they were written in (what
// `apply` compares with); whoever counts or compares does it with canonical names, and so does
// `status`.
#pragma once

#include <string>
#include <string_view>

#include "apis/core/resources.h"
#include "meta/scheme.h"

namespace berth::apis::quota {

// Names that are no count of one of our kinds stay as they are.
std::string CanonicalName(const meta::Scheme& scheme, std::string_view name);

// The same for every name of a list. Under two names of one thing the smaller amount holds.
core::ResourceList Canonical(const meta::Scheme& scheme, const core::ResourceList& list);

}  // namespace berth::apis::quota
