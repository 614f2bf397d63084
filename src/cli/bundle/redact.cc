// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kTaken = "<redacted>";
// Texts of annotations under these are ours.
constexpr std::array<std::string_view, 2> kOwnDomains = {"berth.dev", "ironcore.dev"};
constexpr std::array<std::string_view, 6> kTellingNames = {
    "password", "passphrase", "token", "secretkey", "privatekey", "credential"};
constexpr std::array<std::string_view, 5> kHiddenMembers = {
    "volumeAttributes", "bucketAttributes", "stringData", "binaryData", "userData"};
constexpr size_t kTokenCharactersMin = 20;

Value SizeOf(const Value& value) {
  if (value.is_string() && value.as_string().starts_with("<redacted")) return value;
  return Value(value.is_string() ? fmt::format("<redacted: {} bytes>", value.as_string().size())
                                 : std::string(kTaken));
}

void HideMembers(Value& object) {
  if (!object.is_object()) {
    object = SizeOf(object);
    return;
  }
  for (Value::Member& member : object.members()) member.value = SizeOf(member.value);
}

bool IsOwn(std::string_view annotation) {
  const std::string_view domain = annotation.substr(0, annotation.find('/'));
  return std::ranges::any_of(kOwnDomains, [domain](std::string_view own) {
    return domain == own || domain.ends_with("." + std::string(own));
  });
}

void HideAnnotations(Value& annotations) {
  if (!annotations.is_object()) return;
  for (Value::Member& member : annotations.members()) {
    if (!IsOwn(member.key)) member.value = SizeOf(member.value);
  }
}

bool SaysSecret(std::string_view name) {
  const std::string lower = ToLower(name);
  if (lower.ends_with("ref") || lower.ends_with("refs") || lower.ends_with("name")) return false;
  return std::ranges::any_of(kTellingNames,
                             [&lower](std::string_view word) { return lower.contains(word); });
}

bool IsHidden(std::string_view name) {
  return std::ranges::find(kHiddenMembers, name) != kHiddenMembers.end();
}

void GoOver(Value& value);

void GoOverVariables(Value& variables) {
  if (!variables.is_array()) return;
  for (Value& variable : variables.items()) {
    if (Value* hidden = variable.Find("value"); hidden != nullptr) *hidden = SizeOf(*hidden);
  }
}

void GoOverMember(Value::Member& member) {
  if (member.key == "annotations") HideAnnotations(member.value);
  if (member.key == "efiVars") GoOverVariables(member.value);
  if (IsHidden(member.key)) {
    HideMembers(member.value);
  } else if (SaysSecret(member.key) && member.value.is_string()) {
    member.value = SizeOf(member.value);
  } else {
    GoOver(member.value);
  }
}

void GoOver(Value& value) {
  if (value.is_string()) {
    value = Value(RedactText(value.as_string()));
  } else if (value.is_array()) {
    for (Value& item : value.items()) GoOver(item);
  } else if (value.is_object()) {
    for (Value::Member& member : value.members()) GoOverMember(member);
  }
}

void Drop(Value& object, std::string_view key) {
  if (!object.is_object()) return;
  std::erase_if(object.members(), [key](const Value::Member& member) { return member.key == key; });
}

bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '+' || c == '/' || c == '=';
}

size_t TokenEnd(std::string_view text, size_t from) {
  while (from < text.size() && IsTokenCharacter(text[from])) ++from;
  return from;
}

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// "berth_ID_SECRET"; metrics, whose names begin in the same way, have no such long words.
std::optional<Span> FindOwnToken(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "berth_";
  for (size_t at = text.find(kStart, from); at != std::string_view::npos;
       at = text.find(kStart, at + 1)) {
    const size_t id_end = text.find('_', at + kStart.size());
    if (id_end == std::string_view::npos) return std::nullopt;
    const size_t end = TokenEnd(text, id_end + 1);
    const std::string_view secret = text.substr(id_end + 1, end - id_end - 1);
    const bool is_word =
        secret.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string_view::npos;
    if (secret.size() >= kTokenCharactersMin && !is_word) return Span{at, end};
  }
  return std::nullopt;
}

// "berth1.CA.ID.SECRET" (pki/join_token.h), cut short or whole. A host may be called berth1 and
// have a domain; the digits of CA are no part of one.
std::optional<Span> FindJoinToken(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "berth1.";
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  for (size_t at = text.find(kStart, from); at != std::string_view::npos;
       at = text.find(kStart, at + 1)) {
    const size_t begin = at + kStart.size();
    const size_t digits_end = std::min(text.find_first_not_of(kHexDigits, begin), text.size());
    if (digits_end - begin >= kTokenCharactersMin) return Span{at, TokenEnd(text, digits_end)};
  }
  return std::nullopt;
}

// What stands before the host of a URL: a user alone may be a token, too.
std::optional<Span> FindUserInfo(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "://";
  for (size_t at = text.find(kStart, from); at != std::string_view::npos;
       at = text.find(kStart, at + 1)) {
    const size_t begin = at + kStart.size();
    const size_t end = std::min(text.find_first_of("/?#\\\"'` \t\r\n", begin), text.size());
    const size_t host = text.substr(begin, end - begin).rfind('@');
    if (host != std::string_view::npos) return Span{begin, begin + host};
  }
  return std::nullopt;
}

std::optional<Span> FindBearer(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "Bearer ";
  const size_t at = text.find(kStart, from);
  if (at == std::string_view::npos) return std::nullopt;
  return Span{at + kStart.size(), TokenEnd(text, at + kStart.size())};
}

std::optional<Span> FindPrivateKey(std::string_view text, size_t from) {
  constexpr std::string_view kMark = "PRIVATE KEY-----";
  const size_t mark = text.find(kMark, from);
  if (mark == std::string_view::npos) return std::nullopt;
  const size_t begin = text.rfind("-----BEGIN", mark);
  const size_t last = text.find(kMark, mark + kMark.size());
  return Span{begin == std::string_view::npos || begin < from ? mark : begin,
              last == std::string_view::npos ? text.size() : last + kMark.size()};
}

// Of two that begin at once the longer one: a token may be the user of a URL with a password.
std::optional<Span> FindFirst(std::string_view text, size_t from) {
  std::optional<Span> first;
  for (const auto& found : {FindOwnToken(text, from),
                            FindJoinToken(text, from),
                            FindUserInfo(text, from),
                            FindBearer(text, from),
                            FindPrivateKey(text, from)}) {
    if (!found.has_value()) continue;
    if (!first.has_value() || found->begin < first->begin ||
        (found->begin == first->begin && found->end > first->end)) {
      first = found;
    }
  }
  return first;
}

}  // namespace

std::string RedactText(std::string_view text) {
  std::string out;
  size_t from = 0;
  while (const auto found = FindFirst(text, from)) {
    out.append(text.substr(from, found->begin - from));
    if (found->end > found->begin) out.append(kTaken);
    from = found->end;
  }
  out.append(text.substr(from));
  return out;
}

Value Redact(Value object) {
  const std::string_view kind = object.GetString({"kind"});
  if (kind == "Secret" || kind == "ConfigMap") {
    if (Value* data = object.Find("data"); data != nullptr) HideMembers(*data);
  }
  if (Value* metadata = object.Find("metadata"); metadata != nullptr) {
    Drop(*metadata, "managedFields");
  }
  GoOver(object);
  return object;
}

}  // namespace berth::cli
