// SPDX-License-Identifier: Apache-2.0
// The two ends of an object at rest, for those who make the body between them.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "meta/object.h"

namespace berth::meta::internal {

// Appends the header to an empty `out`, all but the sizes.
void BeginAtRest(const Object& object, std::string& out);
// Fills in the sizes. The body is in `out` from `header_size` on and begins with the members of
// metadata, whose closing brace is at its `metadata_size`.
Bytes EndAtRest(const Object& object, size_t header_size, size_t metadata_size, std::string& out);

}  // namespace berth::meta::internal
