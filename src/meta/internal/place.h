// SPDX-License-Identifier: Apache-2.0
// Where a walk over a tree is, as a chain of stack frames: it costs nothing until it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::meta::internal {

struct Place {
  enum class Step : uint8_t { kRoot, kField, kIndex, kKey };
  const Place* parent = nullptr;
  Step step = Step::kRoot;
  std::string_view name;
  size_t index = 0;

  // "spec.volumes[1].name", "spec.resources[cpu]"; printable whatever the names hold.
  std::string ToString() const;
};

}  // namespace berth::meta::internal
