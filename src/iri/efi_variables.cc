// SPDX-License-Identifier: Apache-2.0
#include "iri/efi_variables.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"

namespace berth::iri {
namespace {

bool IsPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

std::string Encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsPlain(c)) {
      out.push_back(c);
    } else {
      out.append("%").append(HexEncode(std::string_view(&c, 1)));
    }
  }
  return out;
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> Decode(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '%') {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    const auto high = HexDigit(text[1]);
    const auto low = HexDigit(text[2]);
    if (!high || !low) return std::nullopt;
    out.push_back(static_cast<char>(*high * 16 + *low));
    text.remove_prefix(3);
  }
  return out;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kForm = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  return std::ranges::equal(text, kForm, [](char c, char form) {
    return form == 'h' ? HexDigit(c).has_value() : c == form;
  });
}

std::string Limit(size_t size, size_t limit) {
  return std::to_string(size) + " bytes, " + std::to_string(limit) + " are the most";
}

Status Check(const EfiVariable& variable) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (variable.name.empty()) return BadRequest("name is empty");
  if (variable.name.size() > kEfiNameMax) {
    return BadRequest("name has " + Limit(variable.name.size(), kEfiNameMax));
  }
  if (!IsValidUtf8(variable.name) || std::ranges::any_of(variable.name, is_control)) {
    return BadRequest("name " + Quote(variable.name) + " has characters that no name has");
  }
  if (!IsUuid(variable.uuid)) {
    return BadRequest("uuid " + Quote(variable.uuid.substr(0, 64)) + " of " + Quote(variable.name) +
                      " is none: it has the form 8be4df61-93ca-11d2-aa0d-00e098032b8c");
  }
  if (variable.value.empty()) return BadRequest("value of " + Quote(variable.name) + " is empty");
  if (variable.value.size() > kEfiValueMax) {
    return BadRequest("value of " + Quote(variable.name) + " has " +
                      Limit(variable.value.size(), kEfiValueMax));
  }
  return OkStatus();
}

}  // namespace

std::string EfiVariablesText(std::span<const EfiVariable> variables) {
  std::string text;
  for (const EfiVariable& one : variables) {
    text += Encode(one.uuid) + " " + Encode(one.name) + " " + Encode(one.value) + "\n";
  }
  return text;
}

Result<std::vector<EfiVariable>> EfiVariablesOf(std::string_view text) {
  std::vector<EfiVariable> variables;
  std::set<std::pair<std::string, std::string>> seen;
  size_t bytes = 0;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    const std::string at = "efiVars[" + std::to_string(variables.size()) + "]";
    if (variables.size() == kEfiVariablesMax) {
      return BadRequest("efiVars: " + std::to_string(kEfiVariablesMax) + " are the most");
    }
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() != 3) return BadRequest(at + " is not \"UUID NAME VALUE\"");
    auto uuid = Decode(words[0]);
    auto name = Decode(words[1]);
    auto value = Decode(words[2]);
    if (!uuid || !name || !value) return BadRequest(at + " is not percent-encoded");
    EfiVariable variable{
        .name = *std::move(name), .uuid = ToLower(*uuid), .value = *std::move(value)};
    const Status checked = Check(variable);
    if (!checked.ok()) return BadRequest(at + ": " + std::string(checked.message()));
    if (!seen.emplace(variable.uuid, variable.name).second) {
      return BadRequest(at + ": " + Quote(variable.name) + " is there twice");
    }
    bytes += variable.value.size();
    if (bytes > kEfiValuesMax) {
      return BadRequest("efiVars: all values have more than " + std::to_string(kEfiValuesMax) +
                        " bytes, which are the most");
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

}  // namespace berth::iri
