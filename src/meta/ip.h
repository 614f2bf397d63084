// SPDX-License-Identifier: Apache-2.0
// IP addresses and prefixes as objects carry them: parsed and written as Go's net/netip does. A
// value that was never set is null (JSON null), belongs to no family and contains nothing.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::meta {

enum class IpFamily : uint8_t { kNone, kV4, kV6 };
// "IPv4", "IPv6", "".
std::string_view IpFamilyName(IpFamily family);

class IpAddress {
 public:
  constexpr IpAddress() = default;
  static IpAddress V4(uint32_t bits);
  static IpAddress V6(const std::array<uint8_t, 16>& bytes);
  // "10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1". No zones, no leading zeros in IPv4, no port.
  static std::optional<IpAddress> Parse(std::string_view text);

  std::string ToString() const;  // null is ""
  IpFamily family() const { return family_; }
  bool is_null() const { return family_ == IpFamily::kNone; }
  // 32 or 128; 0 for null.
  int bits() const;
  // IPv4 in the first four bytes, the rest zero.
  const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  // The address that follows; null after the last one of the family.
  IpAddress Next() const;

  auto operator<=>(const IpAddress&) const = default;

 private:
  IpFamily family_ = IpFamily::kNone;
  std::array<uint8_t, 16> bytes_ = {};
};

class IpPrefix {
 public:
  constexpr IpPrefix() = default;
  // Null if the length does not fit the address's family.
  IpPrefix(IpAddress address, int length);
  // "10.0.0.0/24". Bits beyond the length are kept, as netip.ParsePrefix does; see Masked.
  static std::optional<IpPrefix> Parse(std::string_view text);

  std::string ToString() const;  // null is ""
  IpFamily family() const { return address_.family(); }
  bool is_null() const { return address_.is_null(); }
  const IpAddress& address() const { return address_; }
  int length() const { return length_; }
  bool is_single_ip() const { return !is_null() && length_ == address_.bits(); }
  // The same prefix with the bits beyond its length cleared.
  IpPrefix Masked() const;

  bool Contains(const IpAddress& address) const;
  bool Contains(const IpPrefix& other) const;
  bool Overlaps(const IpPrefix& other) const;

  auto operator<=>(const IpPrefix&) const = default;

 private:
  IpAddress address_;
  uint8_t length_ = 0;
};

}  // namespace berth::meta
