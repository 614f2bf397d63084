// SPDX-License-Identifier: Apache-2.0
// The change that apply asks for: what apply sends, and what diff lets the server try.
#pragma once

#include <string_view>

#include "base/status.h"
#include "cli/api/resource.h"
#include "cli/commands/placement.h"
#include "meta/value.h"

namespace berth::cli {

struct ApplyPatch {
  std::string_view content_type;
  meta::Value patch;  // without members: nothing changes
};

// From the object as it is to the manifest, which has itself in its annotation. Kinds that this
// program knows are patched item by item; for others lists are replaced whole, as kubectl does for
// kinds without a schema.
ApplyPatch PlanApplyPatch(const Resource& resource,
                          const meta::Value& modified,
                          const meta::Value& current);

// BadRequest for a manifest with generateName: there is no object to find.
Status CheckNamed(const Placement& placement);

}  // namespace berth::cli
