// SPDX-License-Identifier: Apache-2.0
#include "meta/ip.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace berth::meta {
namespace {

using Bytes16 = std::array<uint8_t, 16>;

bool ParseV4(std::string_view text, uint8_t* out) {
  const auto parts = Split(text, '.');
  if (parts.size() != 4) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = parts[i];
    // A leading zero is octal to some readers and decimal to others: refuse it.
    if (part.size() > 3 || (part.size() > 1 && part[0] == '0')) return false;
    const auto value = ParseUint(part);
    if (!value || *value > 255) return false;
    out[i] = static_cast<uint8_t>(*value);
  }
  return true;
}

// Reads groups separated by ':' up to `text`'s end into `out`; the last may be IPv4. Gives the
// number of bytes, or nullopt.
std::optional<size_t> ParseGroups(std::string_view text, Bytes16& out) {
  size_t size = 0;
  if (text.empty()) return size;
  const auto groups = Split(text, ':');
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto group = groups[i];
    if (group.contains('.')) {
      if (i + 1 != groups.size() || size + 4 > out.size()) return std::nullopt;
      if (!ParseV4(group, out.data() + size)) return std::nullopt;
      return size + 4;
    }
    if (group.empty() || group.size() > 4 || size + 2 > out.size()) return std::nullopt;
    uint16_t value = 0;
    const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), value, 16);
    if (error != std::errc() || end != group.data() + group.size()) return std::nullopt;
    out[size++] = static_cast<uint8_t>(value >> 8);
    out[size++] = static_cast<uint8_t>(value & 0xff);
  }
  return size;
}

bool ParseV6(std::string_view text, Bytes16& out) {
  const size_t gap = text.find("::");
  if (gap == std::string_view::npos) return ParseGroups(text, out) == out.size();
  if (text.find("::", gap + 1) != std::string_view::npos) return false;
  Bytes16 front{};
  Bytes16 back{};
  const auto front_text = text.substr(0, gap);
  if (front_text.contains('.')) return false;
  const auto front_size = ParseGroups(front_text, front);
  const auto back_size = ParseGroups(text.substr(gap + 2), back);
  if (!front_size || !back_size || *front_size + *back_size > 14) return false;
  std::copy_n(front.begin(), *front_size, out.begin());
  std::copy_n(back.begin(), *back_size, out.end() - static_cast<ptrdiff_t>(*back_size));
  return true;
}

std::string FormatV4(const uint8_t* bytes) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) text += '.';
    text += std::to_string(bytes[i]);
  }
  return text;
}

std::string FormatV6(const Bytes16& bytes) {
  constexpr Bytes16 kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(bytes.begin(), bytes.begin() + 12, kMapped.begin())) {
    return "::ffff:" + FormatV4(bytes.data() + 12);
  }
  const auto group = [&](int i) {
    const size_t at = size_t{2} * static_cast<size_t>(i);
    return bytes[at] << 8 | bytes[at + 1];
  };
  int gap = -1;
  int gap_size = 1;  // a single zero group is not shortened
  for (int i = 0; i < 8; ++i) {
    int size = 0;
    while (i + size < 8 && group(i + size) == 0) ++size;
    if (size > gap_size) {
      gap = i;
      gap_size = size;
    }
  }
  std::string text;
  for (int i = 0; i < 8; ++i) {
    if (i == gap) {
      text += "::";
      i += gap_size - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    std::array<char, 4> hex;
    const auto [end, error] = std::to_chars(hex.data(), hex.data() + hex.size(), group(i), 16);
    text.append(hex.data(), end);
  }
  return text;
}

}  // namespace

std::string_view IpFamilyName(IpFamily family) {
  switch (family) {
    case IpFamily::kNone: return "";
    case IpFamily::kV4: return "IPv4";
    case IpFamily::kV6: return "IPv6";
  }
  return "";
}

IpAddress IpAddress::V4(uint32_t bits) {
  IpAddress address;
  address.family_ = IpFamily::kV4;
  for (size_t i = 0; i < 4; ++i) {
    address.bytes_[i] = static_cast<uint8_t>(bits >> (24 - 8 * i) & 0xff);
  }
  return address;
}

IpAddress IpAddress::V6(const std::array<uint8_t, 16>& bytes) {
  IpAddress address;
  address.family_ = IpFamily::kV6;
  address.bytes_ = bytes;
  return address;
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  IpAddress address;
  if (text.contains(':')) {
    address.family_ = IpFamily::kV6;
    if (!ParseV6(text, address.bytes_)) return std::nullopt;
  } else {
    address.family_ = IpFamily::kV4;
    if (!ParseV4(text, address.bytes_.data())) return std::nullopt;
  }
  return address;
}

std::string IpAddress::ToString() const {
  switch (family_) {
    case IpFamily::kNone: return "";
    case IpFamily::kV4: return FormatV4(bytes_.data());
    case IpFamily::kV6: return FormatV6(bytes_);
  }
  return "";
}

int IpAddress::bits() const {
  return family_ == IpFamily::kV4 ? 32 : family_ == IpFamily::kV6 ? 128 : 0;
}

IpAddress IpAddress::Next() const {
  IpAddress next = *this;
  for (auto i = static_cast<size_t>(bits() / 8); i-- > 0;) {
    if (++next.bytes_[i] != 0) return next;
  }
  return {};
}

IpPrefix::IpPrefix(IpAddress address, int length) {
  if (length < 0 || length > address.bits() || address.is_null()) return;
  address_ = address;
  length_ = static_cast<uint8_t>(length);
}

std::optional<IpPrefix> IpPrefix::Parse(std::string_view text) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::Parse(text.substr(0, slash));
  const auto digits = text.substr(slash + 1);
  const auto length = ParseUint(digits);
  if (!address || !length || digits.size() > 3) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  const IpPrefix prefix(*address, static_cast<int>(*length));
  if (prefix.is_null()) return std::nullopt;
  return prefix;
}

std::string IpPrefix::ToString() const {
  if (is_null()) return "";
  return address_.ToString() + "/" + std::to_string(length_);
}

IpPrefix IpPrefix::Masked() const {
  auto bytes = address_.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int kept = std::clamp(length_ - static_cast<int>(8 * i), 0, 8);
    bytes[i] = static_cast<uint8_t>(bytes[i] & (0xff00 >> kept));
  }
  if (family() == IpFamily::kV6) return {IpAddress::V6(bytes), length_};
  if (family() == IpFamily::kNone) return {};
  const uint32_t bits = static_cast<uint32_t>(bytes[0]) << 24 |
                        static_cast<uint32_t>(bytes[1]) << 16 |
                        static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
  return {IpAddress::V4(bits), length_};
}

bool IpPrefix::Contains(const IpAddress& address) const {
  if (is_null() || address.family() != family()) return false;
  return IpPrefix(address, length_).Masked() == Masked();
}

bool IpPrefix::Contains(const IpPrefix& other) const {
  return length_ <= other.length_ && Contains(other.address_);
}

bool IpPrefix::Overlaps(const IpPrefix& other) const {
  return Contains(other) || other.Contains(*this);
}

}  // namespace berth::meta
