// SPDX-License-Identifier: Apache-2.0
// What objects use of a ResourceQuota, as pure functions. The API server charges a write with them,
// the quota controller recomputes with them, so both always agree.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/resource_quota.h"
#include "apis/core/resources.h"
#include "base/result.h"
#include "meta/object.h"

namespace berth::apis::quota {

// Finds a class by kind and name; nothing if there is none.
using ClassFinder =
    std::function<std::optional<meta::Object>(const meta::KindInfo& kind, std::string_view name)>;

// The kinds whose objects are counted: Machine, Volume, Bucket.
const std::vector<const meta::KindInfo*>& CountedKinds();
bool IsCounted(const meta::KindInfo& kind);

// What one object of a counted kind uses, by quota resource name. BadRequest if its class is needed
// and does not exist.
Result<core::ResourceList> UsageOf(const meta::Object& object, const ClassFinder& classes);

// Whether the quota's scope selector takes the object.
bool InScope(const core::ResourceQuota& quota, const meta::Object& object);

// Adds every amount of `more` that `limits` names; the others are of no interest.
void AddLimited(core::ResourceList& used,
                const core::ResourceList& more,
                const core::ResourceList& limits);

// "requests.cpu=4,requests.memory=8Gi", for the names in `which`.
std::string Describe(const core::ResourceList& amounts, const core::ResourceList& which);

}  // namespace berth::apis::quota
