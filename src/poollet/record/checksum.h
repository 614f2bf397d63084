// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of log entries.
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::poollet {

uint32_t Crc32c(std::string_view bytes);

}  // namespace berth::poollet
