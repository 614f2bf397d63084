// SPDX-License-Identifier: Apache-2.0
// Whole OpenAPI documents.
#pragma once

#include <string>
#include <string_view>

#include "meta/scheme.h"
#include "meta/value.h"

namespace berth::meta {

// OpenAPI v2: one document of every group. `version` is the server's.
Value OpenApiV2(const Scheme& scheme, std::string_view version);
// OpenAPI v3: one document per group-version.
Value OpenApiV3(const ServedGroup& served, std::string_view version);

// "api/v1" or "apis/GROUP/VERSION": how the index of v3 names a group-version.
std::string OpenApiV3Path(const ServedGroup& served);

}  // namespace berth::meta
