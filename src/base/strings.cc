// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace berth {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Length of the UTF-8 sequence at `at`, or 0 if it is not valid (overlong forms, surrogates, beyond
// U+10FFFF).
size_t Utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

std::string Escape(std::string_view text, bool escape_quotes) {
  std::string out;
  out.reserve(text.size() + 2);
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t length = Utf8Length(text, at);
    // C1 controls (U+0080..U+009F) are terminal commands too.
    const bool c1 =
        length == 2 && static_cast<uint8_t>(c) == 0xc2 && static_cast<uint8_t>(text[at + 1]) < 0xa0;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (escape_quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (length == 0 || c1 || static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> hex{};
      const size_t count = length == 0 ? 1 : length;
      for (size_t i = 0; i < count; ++i) {
        std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<uint8_t>(text[at + i]));
        out += hex.data();
      }
      at += count;
      continue;
    } else {
      out.append(text, at, length);
      at += length;
      continue;
    }
    ++at;
  }
  return out;
}

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeBase64Values() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i)
    values[static_cast<uint8_t>(kBase64[i])] = static_cast<int8_t>(i);
  return values;
}
constexpr auto kBase64Values = MakeBase64Values();

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t start = text.find_first_not_of(kSpace);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kSpace) - start + 1);
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string Quote(std::string_view text) { return '"' + Escape(text, true) + '"'; }
std::string Printable(std::string_view text) { return Escape(text, false); }

bool IsValidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::optional<int64_t> ParseInt(std::string_view text) { return ParseNumber<int64_t>(text); }
std::optional<uint64_t> ParseUint(std::string_view text) { return ParseNumber<uint64_t>(text); }

std::string Base64Encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t i = 0; i < 3; ++i)
      word = word << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kBase64[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  if (text.ends_with("==")) {
    padding = 2;
  } else if (text.ends_with("=")) {
    padding = 1;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool pad = last && i >= 4 - padding;
      const int8_t value = pad ? int8_t{0} : kBase64Values[static_cast<uint8_t>(text[at + i])];
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(value);
    }
    const size_t count = last ? 3 - padding : 3;
    for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(word >> (16 - 8 * i) & 0xff);
    if (count < 3 && (word & ((1U << (8 * (3 - count))) - 1)) != 0)
      return std::nullopt;  // not canonical
  }
  return bytes;
}

std::string HexEncode(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kHex[static_cast<uint8_t>(c) >> 4];
    text += kHex[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  const int limit = std::max<int>(2, static_cast<int>(word.size()) / 3);
  std::optional<std::string> best;
  int best_distance = limit + 1;
  for (const auto& candidate : candidates) {
    const int distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace berth
