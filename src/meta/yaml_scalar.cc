// SPDX-License-Identifier: Apache-2.0
#include "meta/internal/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

namespace berth::meta::internal {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsOneOf(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

std::optional<bool> AsBool(std::string_view text) {
  constexpr std::array<std::string_view, 11> kTrue = {
      "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  constexpr std::array<std::string_view, 11> kFalse = {
      "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  if (IsOneOf(text, kTrue)) return true;
  if (IsOneOf(text, kFalse)) return false;
  return std::nullopt;
}

// Decimal, 0x, 0b, 0o and the bare leading zero of octal; underscores are already gone.
std::optional<Value> AsInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) base = 16;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) base = 2;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'o' || text[1] == 'O')) base = 8;
  if (base != 10) {
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (error != std::errc()) return std::nullopt;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (number <= kMax) {
    const auto value = static_cast<int64_t>(number);
    return Value(negative ? -value : value);
  }
  if (negative && number == kMax + 1) return Value(std::numeric_limits<int64_t>::min());
  if (negative) return std::nullopt;
  return Value(static_cast<double>(number));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool HasFloatForm(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::optional<Value> AsNumber(std::string_view original) {
  if (original.empty() ||
      !(IsDigit(original[0]) || std::string_view("+-.").contains(original[0]))) {
    return std::nullopt;
  }
  std::string text(original);
  std::erase(text, '_');
  if (auto integer = AsInteger(text)) return integer;
  if (!HasFloatForm(text)) return std::nullopt;
  const double number = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(number)) return std::nullopt;
  return Value(number);
}

bool IsInfiniteOrNan(std::string_view text) {
  constexpr std::array<std::string_view, 12> kWords = {".nan",
                                                       ".NaN",
                                                       ".NAN",
                                                       ".inf",
                                                       ".Inf",
                                                       ".INF",
                                                       "+.inf",
                                                       "+.Inf",
                                                       "+.INF",
                                                       "-.inf",
                                                       "-.Inf",
                                                       "-.INF"};
  return IsOneOf(text, kWords);
}

// 12:30, 1:2:3.5: numbers to base 60 in YAML 1.1.
bool IsSexagesimal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && IsDigit(text[0]) && text.contains(':') &&
         std::ranges::all_of(text,
                             [](char c) { return IsDigit(c) || c == ':' || c == '_' || c == '.'; });
}

// 2026-01-31, alone or with a time behind it.
bool IsTimestamp(std::string_view text) {
  size_t at = 0;
  const auto number = [&](size_t digits_min, size_t digits_max, int max) {
    const size_t start = at;
    while (at < text.size() && IsDigit(text[at]) && at - start < digits_max) ++at;
    int value = 0;
    std::from_chars(text.data() + start, text.data() + at, value);
    return at - start >= digits_min && value <= max;
  };
  const auto dash = [&] {
    const bool is_dash = text.substr(at).starts_with('-');
    at += is_dash ? 1 : 0;
    return is_dash;
  };
  if (!number(4, 4, 9999) || !dash() || !number(1, 2, 12) || !dash() || !number(1, 2, 31)) {
    return false;
  }
  if (at == text.size()) return true;
  return std::string_view("Tt ").contains(text[at]) && at + 1 < text.size() &&
         IsDigit(text[at + 1]);
}

}  // namespace

Value ResolvePlain(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNulls = {"", "~", "null", "Null", "NULL"};
  if (IsOneOf(text, kNulls)) return {};
  if (const auto boolean = AsBool(text)) return *boolean;
  if (auto number = AsNumber(text)) return *std::move(number);
  return Value(text);
}

bool NeedsQuotes(std::string_view text) {
  return !ResolvePlain(text).is_string() || IsInfiniteOrNan(text) || IsSexagesimal(text) ||
         IsTimestamp(text);
}

}  // namespace berth::meta::internal
