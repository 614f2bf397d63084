// SPDX-License-Identifier: Apache-2.0
// Names of devices that are the same whenever they are made again.
#include <algorithm>

#include "base/strings.h"
#include "pki/digest.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

bool IsPlainName(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return IsPlain(c); });
}

Result<std::string> TargetOf(std::string_view device) {
  const bool fits =
      device.size() == 3 && device.starts_with("od") && device[2] >= 'a' && device[2] <= 'y';
  if (!fits) {
    return BadRequest("device " + Quote(device) + ": expected a name from oda to ody");
  }
  return "vd" + std::string(1, device[2]);
}

std::string SerialOf(std::string_view volume_name) {
  constexpr size_t kHashBytes = 8;
  if (IsPlainName(volume_name) && !volume_name.empty() && volume_name.size() <= kSerialBytesMax) {
    return std::string(volume_name);
  }
  std::string serial;
  for (const char c : volume_name) {
    if (serial.size() + kHashBytes + 1 >= kSerialBytesMax) break;
    serial += IsPlain(c) ? c : '_';
  }
  return serial + "-" + pki::Sha256Hex(volume_name).substr(0, kHashBytes);
}

std::string MacOf(std::string_view text) {
  constexpr std::string_view kOfVirtualMachines = "52:54";  // locally administered
  constexpr size_t kOwnBytes = 4;
  const std::string hash = pki::Sha256Hex(text);
  std::string mac(kOfVirtualMachines);
  for (size_t i = 0; i < kOwnBytes; ++i) mac += ":" + hash.substr(2 * i, 2);
  return mac;
}

std::string UuidOf(std::string_view text) {
  std::string hash = pki::Sha256Hex(text);
  hash[12] = '8';  // RFC 9562: a version for one's own way of making them
  hash[16] = 'a';  // the variant
  return hash.substr(0, 8) + "-" + hash.substr(8, 4) + "-" + hash.substr(12, 4) + "-" +
         hash.substr(16, 4) + "-" + hash.substr(20, 12);
}

}  // namespace berth::runtime
