// SPDX-License-Identifier: Apache-2.0
#include "base/uid.h"

#include <cstdint>

namespace berth {

std::string NewUid(Random& random) {
  constexpr std::string_view kHex = "0123456789abcdef";
  uint64_t high = random.Next();
  uint64_t low = random.Next();
  high = (high & ~0xf000ULL) | 0x4000ULL;                // version 4
  low = (low & ~(0xc000ULL << 48)) | (0x8000ULL << 48);  // variant 10
  std::string text;
  text.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    const uint64_t word = i < 16 ? high : low;
    text += kHex[(word >> (60 - 4 * (i % 16))) & 0xf];
  }
  return text;
}

bool IsUid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

}  // namespace berth
