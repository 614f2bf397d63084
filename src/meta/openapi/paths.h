// SPDX-License-Identifier: Apache-2.0
// The paths of a group-version and what can be done on them.
#pragma once

#include "meta/openapi/schema.h"
#include "meta/scheme.h"
#include "meta/value.h"

namespace berth::meta {

// Adds every path of the group's kinds to `paths`.
void AddPaths(const ServedGroup& served, OpenApiVersion version, Value& paths);

}  // namespace berth::meta
