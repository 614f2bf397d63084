// SPDX-License-Identifier: Apache-2.0
// Bytes for people.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace berth::app {

// "31.4 MiB".
inline std::string SizeText(int64_t bytes) {
  constexpr int64_t kKi = 1024;
  constexpr int64_t kMi = kKi * kKi;
  if (bytes < kKi) return fmt::format("{} B", bytes);
  const auto size = static_cast<double>(bytes);
  if (bytes < kMi) return fmt::format("{:.1f} KiB", size / kKi);
  if (bytes < kKi * kMi) return fmt::format("{:.1f} MiB", size / kMi);
  return fmt::format("{:.1f} GiB", size / (kKi * kMi));
}

}  // namespace berth::app
