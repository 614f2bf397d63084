// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/crc32c.h"

#include <array>
#include <cstring>

namespace berth::store {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = MakeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendWithSse42(uint32_t crc, std::string_view bytes) {
  uint64_t state = ~crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    state = __builtin_ia32_crc32di(state, word);
  }
  auto tail = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++at)
    tail = __builtin_ia32_crc32qi(tail, static_cast<unsigned char>(*at));
  return ~tail;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, std::string_view bytes) {
  uint32_t state = ~crc;
  for (const char byte : bytes) {
    state = kTable[(state ^ static_cast<uint8_t>(byte)) & 0xff] ^ (state >> 8);
  }
  return ~state;
}

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_sse42) return ExtendWithSse42(crc, bytes);
#endif
  return ExtendCrc32cPortable(crc, bytes);
}

}  // namespace berth::store
