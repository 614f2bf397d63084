// SPDX-License-Identifier: Apache-2.0
// What `explain` prints: the documentation of a kind or one of its fields, in kubectl's layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "meta/kind.h"

namespace berth::meta {

enum class ExplainDepth : uint8_t { kFields, kRecursive };

// `group` in the spelling to show. `path` is "" or dotted: "spec.volumes"; lists and maps are
// looked into. NotFound names the part that does not exist and the nearest one that does.
Result<std::string> Explain(const KindInfo& kind,
                            std::string_view group,
                            std::string_view path,
                            ExplainDepth depth);

}  // namespace berth::meta
