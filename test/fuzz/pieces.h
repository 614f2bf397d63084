// SPDX-License-Identifier: Apache-2.0
// How one input becomes several: a choice from its first byte, texts between zero bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::fuzz {

// The first byte, taken off; 0 if there is none.
inline uint8_t TakeByte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return first;
}

// What stands before the next zero byte, taken off with it.
inline std::string_view TakeText(std::string_view& bytes) {
  const size_t end = bytes.find('\0');
  const std::string_view text = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return text;
}

}  // namespace berth::fuzz
