// SPDX-License-Identifier: Apache-2.0
// Small string functions that the standard library lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// Splits at every separator; "" gives one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

// Text in double quotes with Go's escapes; control characters and invalid UTF-8 never reach a
// terminal or a log raw.
std::string Quote(std::string_view text);
// The same without the quotes, for tables: one line, no control characters.
std::string Printable(std::string_view text);
bool IsValidUtf8(std::string_view text);

// A whole decimal number with nothing around it.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUint(std::string_view text);

std::string Base64Encode(std::string_view bytes);
// Standard alphabet with padding; nullopt for anything else.
std::optional<std::string> Base64Decode(std::string_view text);
std::string HexEncode(std::string_view bytes);

// Number of single-character edits between two words: "did you mean ...".
int EditDistance(std::string_view a, std::string_view b);
// The closest candidate within a third of the word's length (at least 2 edits), if any.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// Lets std::map and base maps keyed by std::string be searched with a string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

}  // namespace berth
