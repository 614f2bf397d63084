// SPDX-License-Identifier: Apache-2.0
#include "meta/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "base/strings.h"

namespace berth::meta {
namespace {

using Wide = Quantity::Wide;
using Format = Quantity::Format;

constexpr Wide kWideMax = static_cast<Wide>((static_cast<unsigned __int128>(1) << 127) - 1);
constexpr Wide kNanosPerUnit = 1'000'000'000;
constexpr Wide kBinaryCap = Wide{std::numeric_limits<int64_t>::max()} * kNanosPerUnit;
constexpr int kNanoDigits = 9;
// Exponents beyond this cannot give a value in range, whatever the number in front.
constexpr int64_t kExponentMax = 1000;

constexpr std::string_view kFormatError =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kSuffixError = "unable to parse quantity's suffix";
constexpr std::string_view kNumberError = "unable to parse numeric part of quantity";

struct Suffix {
  int base = 10;
  int exponent = 0;
  Format format = Format::kDecimalSi;
};

struct NamedSuffix {
  std::string_view text;
  Suffix suffix;
};
constexpr auto kSuffixes = std::to_array<NamedSuffix>({
    {"", {10, 0, Format::kDecimalSi}},
    {"n", {10, -9, Format::kDecimalSi}},
    {"u", {10, -6, Format::kDecimalSi}},
    {"m", {10, -3, Format::kDecimalSi}},
    {"k", {10, 3, Format::kDecimalSi}},
    {"M", {10, 6, Format::kDecimalSi}},
    {"G", {10, 9, Format::kDecimalSi}},
    {"T", {10, 12, Format::kDecimalSi}},
    {"P", {10, 15, Format::kDecimalSi}},
    {"E", {10, 18, Format::kDecimalSi}},
    {"Ki", {2, 10, Format::kBinarySi}},
    {"Mi", {2, 20, Format::kBinarySi}},
    {"Gi", {2, 30, Format::kBinarySi}},
    {"Ti", {2, 40, Format::kBinarySi}},
    {"Pi", {2, 50, Format::kBinarySi}},
    {"Ei", {2, 60, Format::kBinarySi}},
});

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<Suffix> InterpretSuffix(std::string_view text) {
  for (const auto& named : kSuffixes) {
    if (named.text == text) return named.suffix;
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  std::string_view digits = text.substr(1);
  if (digits.front() == '+') digits.remove_prefix(1);
  const auto exponent = ParseInt(digits);
  if (!exponent) return std::nullopt;
  const int64_t capped = std::clamp(*exponent, -kExponentMax, kExponentMax);
  return Suffix{10, static_cast<int>(capped), Format::kDecimalExponent};
}

// The text taken apart: sign, digits before and after the point, suffix.
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view suffix;
};

std::optional<Parts> TakeApart(std::string_view text) {
  Parts parts;
  size_t at = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    parts.negative = text[0] == '-';
    ++at;
  }
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return text.substr(start, at - start);
  };
  parts.whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    parts.fraction = digits();
  }
  if (parts.whole.empty() && parts.fraction.empty()) return std::nullopt;
  parts.suffix = text.substr(at);
  for (size_t i = 0, stage = 0; i < parts.suffix.size(); ++i) {
    const char c = parts.suffix[i];
    if (stage == 0 && std::string_view("eEinumkKMGTP").contains(c)) continue;
    const bool is_sign = stage == 0 && (c == '+' || c == '-');
    if (!is_sign && !IsDigit(c)) return std::nullopt;
    stage = 1;
  }
  return parts;
}

// A number as decimal digits, the first `point` of them before the decimal point. Binary suffixes
// double it digit by digit: exact, and rare enough to be slow.
struct Digits {
  std::vector<uint8_t> digits;
  int point = 0;
};

void Double(Digits& number) {
  int carry = 0;
  for (size_t i = number.digits.size(); i-- > 0;) {
    const int doubled = number.digits[i] * 2 + carry;
    number.digits[i] = static_cast<uint8_t>(doubled % 10);
    carry = doubled / 10;
  }
  if (carry > 0) {
    number.digits.insert(number.digits.begin(), static_cast<uint8_t>(carry));
    ++number.point;
  }
}

// Billionths, rounded up; nullopt beyond the range.
std::optional<Wide> ToNanos(const Digits& number) {
  const int wanted = number.point + kNanoDigits;  // how many leading digits are whole billionths
  Wide nanos = 0;
  bool has_rest = false;
  for (int i = 0; i < std::max(wanted, static_cast<int>(number.digits.size())); ++i) {
    const int digit =
        i < static_cast<int>(number.digits.size()) ? number.digits[static_cast<size_t>(i)] : 0;
    if (i >= wanted) {
      has_rest = has_rest || digit != 0;
    } else if (__builtin_mul_overflow(nanos, Wide{10}, &nanos) ||
               __builtin_add_overflow(nanos, Wide{digit}, &nanos)) {
      return std::nullopt;
    } else if (nanos == 0 && i >= static_cast<int>(number.digits.size())) {
      return Wide{0};
    }
  }
  if (has_rest && __builtin_add_overflow(nanos, Wide{1}, &nanos)) return std::nullopt;
  return nanos;
}

std::optional<Wide> Evaluate(const Parts& parts, const Suffix& suffix) {
  Digits number;
  for (const char c : parts.whole) number.digits.push_back(static_cast<uint8_t>(c - '0'));
  number.point = static_cast<int>(number.digits.size());
  for (const char c : parts.fraction) number.digits.push_back(static_cast<uint8_t>(c - '0'));
  if (suffix.base == 10) {
    number.point += suffix.exponent;
  } else {
    for (int i = 0; i < suffix.exponent; ++i) Double(number);
  }
  return ToNanos(number);
}

Wide Magnitude(Wide value) { return value < 0 ? -value : value; }

int64_t RoundedUp(Wide nanos, Wide unit) {
  const Wide magnitude = Magnitude(nanos);
  Wide units = magnitude / unit + (magnitude % unit != 0 ? 1 : 0);
  units = std::min(units, Wide{std::numeric_limits<int64_t>::max()});
  return static_cast<int64_t>(nanos < 0 ? -units : units);
}

void AppendWide(Wide value, std::string& out) {
  std::array<char, 48> buffer;
  size_t at = buffer.size();
  auto rest = static_cast<unsigned __int128>(Magnitude(value));
  do {
    buffer[--at] = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) buffer[--at] = '-';
  out.append(buffer.data() + at, buffer.size() - at);
}

void AppendBinary(Wide units, std::string& out) {
  constexpr std::array<std::string_view, 7> kNames = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t power = 0;
  while (power + 1 < kNames.size() && units % 1024 == 0) {
    units /= 1024;
    ++power;
  }
  AppendWide(units, out);
  out += kNames[power];
}

void AppendDecimal(Wide nanos, Format format, std::string& out) {
  constexpr std::array<std::string_view, 10> kNames = {
      "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  size_t power = 0;
  constexpr size_t kPowerMax = 12;  // 1e27: the representation ends near 1.7e29
  while (power < kPowerMax && nanos % 1000 == 0) {
    nanos /= 1000;
    ++power;
  }
  AppendWide(nanos, out);
  if (format == Format::kDecimalSi && power < kNames.size()) {
    out += kNames[power];
  } else if (const int exponent = static_cast<int>(power) * 3 - kNanoDigits; exponent != 0) {
    out += "e" + std::to_string(exponent);
  }
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  if (text.size() > kTextMax) {
    return BadRequest("a quantity has at most " + std::to_string(kTextMax) + " characters, not " +
                      std::to_string(text.size()));
  }
  const auto parts = TakeApart(text);
  if (!parts) return BadRequest(std::string(kFormatError));
  const auto suffix = InterpretSuffix(parts->suffix);
  if (!suffix) return BadRequest(std::string(kSuffixError));

  Format format = suffix->format;
  std::optional<Wide> nanos;
  constexpr size_t kFastDigits = 9;  // times 2^60 and a billion still fits
  if (parts->fraction.empty() && parts->whole.size() <= kFastDigits && suffix->exponent >= 0 &&
      (suffix->base == 2 || suffix->exponent == 0)) {
    Wide whole = 0;
    for (const char c : parts->whole) whole = whole * 10 + (c - '0');
    nanos = (suffix->base == 2 ? whole << suffix->exponent : whole) * kNanosPerUnit;
  } else {
    nanos = Evaluate(*parts, *suffix);
  }
  if (format == Format::kBinarySi) {
    nanos = std::min(nanos.value_or(kWideMax), kBinaryCap);
    if (*nanos < kNanosPerUnit) format = Format::kDecimalSi;
  }
  if (!nanos) return BadRequest(std::string(kNumberError) + ": it must be below 1e29");
  return FromNanos(parts->negative ? -*nanos : *nanos, *nanos == 0 ? Format::kDecimalSi : format);
}

std::string Quantity::ToString() const {
  std::string out;
  AppendTo(out);
  return out;
}

void Quantity::AppendTo(std::string& out) const {
  if (nanos_ == 0) {
    out += '0';
  } else if (format_ == Format::kBinarySi && nanos_ % (1024 * kNanosPerUnit) == 0) {
    // What has no binary suffix is written as it will be once it has been read again: 1.953125Ki is
    // 2k, as 2000 is.
    AppendBinary(nanos_ / kNanosPerUnit, out);
  } else {
    AppendDecimal(nanos_, format_ == Format::kBinarySi ? Format::kDecimalSi : format_, out);
  }
}

int64_t Quantity::Value() const { return RoundedUp(nanos_, kNanosPerUnit); }
int64_t Quantity::MilliValue() const { return RoundedUp(nanos_, kNanosPerUnit / 1000); }
double Quantity::ToDouble() const { return static_cast<double>(nanos_) / 1e9; }

Quantity& Quantity::operator+=(const Quantity& other) {
  if (IsZero()) format_ = other.format_;
  if (__builtin_add_overflow(nanos_, other.nanos_, &nanos_)) {
    nanos_ = other.nanos_ > 0 ? kWideMax : -kWideMax;
  }
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) { return *this += -other; }

Quantity& Quantity::operator*=(int64_t factor) {
  const bool negative = (nanos_ < 0) != (factor < 0);
  if (__builtin_mul_overflow(nanos_, Wide{factor}, &nanos_)) {
    nanos_ = negative ? -kWideMax : kWideMax;
  }
  return *this;
}

Quantity Quantity::operator-() const { return FromNanos(-nanos_, format_); }

}  // namespace berth::meta
