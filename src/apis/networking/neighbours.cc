// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/neighbours.h"

#include <array>
#include <cstdint>
#include <string>

#include "base/strings.h"

namespace berth::apis::networking {
namespace {

using meta::IpAddress;
using meta::IpFamily;
using meta::IpPrefix;

constexpr int kBits = 32;

uint32_t BitsOf(const IpAddress& address) {
  const auto& bytes = address.bytes();
  return uint32_t{bytes[0]} << 24U | uint32_t{bytes[1]} << 16U | uint32_t{bytes[2]} << 8U |
         uint32_t{bytes[3]};
}

}  // namespace

Result<int> ParsePrefixLength(std::string_view attribute) {
  const auto length = ParseInt(attribute);
  if (length.has_value() && *length >= 1 && *length <= kBits) return static_cast<int>(*length);
  return BadRequest(std::string(kPrefixLengthAttribute) + " " + Quote(attribute) +
                    ": expected a number from 1 to 32");
}

int UsualPrefixLength(const IpAddress& address) {
  constexpr std::array<std::string_view, 4> kPrivate = {
      "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"};
  for (const std::string_view text : kPrivate) {
    const IpPrefix range = *IpPrefix::Parse(text);
    if (range.Contains(address)) return range.length();
  }
  constexpr int kElse = 24;
  return kElse;
}

bool IsOfTheWire(const IpAddress& address, int prefix_length) {
  if (address.family() != IpFamily::kV4 || prefix_length > kBits - 2) return false;
  const uint32_t guests = ~uint32_t{0} >> static_cast<uint32_t>(prefix_length);
  const uint32_t guest = BitsOf(address) & guests;
  return guest == 0 || guest == guests;
}

}  // namespace berth::apis::networking
