// SPDX-License-Identifier: Apache-2.0
#include "pki/token.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "pki/digest.h"

namespace berth::pki {
namespace {

constexpr std::string_view kTokenStart = "berth_";
// Letters and digits that a Secret's name may hold, without vowels and look-alikes.
constexpr std::string_view kIdAlphabet = "bcdfghjkmnpqrstvwxz2456789";
constexpr size_t kIdLength = 10;  // 26^10: ids do not meet by chance
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretLength = 43;
constexpr size_t kHashLength = 64;

bool IsSecretCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

bool IsIdCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

Status CheckName(std::string_view field, std::string_view name) {
  const bool control = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (name.empty() || control || !IsValidUtf8(name)) {
    return BadRequest(
        fmt::format("{} {}: must be text without control characters", field, Quote(name)));
  }
  return OkStatus();
}

Status CheckSubject(const std::string& user, const std::vector<std::string>& groups) {
  TRY_STATUS(CheckName("user", user));
  for (const auto& group : groups) {
    TRY_STATUS(CheckName("group", group));
    if (group.find(',') != std::string::npos) {
      return BadRequest(fmt::format("group {}: must not hold a comma", Quote(group)));
    }
  }
  return OkStatus();
}

std::string_view FieldOf(const std::map<std::string, std::string>& data, const std::string& field) {
  auto found = data.find(field);
  return found == data.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

Result<NewToken> MakeToken(Entropy& entropy,
                           const std::string& user,
                           const std::vector<std::string>& groups,
                           std::optional<Duration> ttl,
                           WallTime now) {
  TRY_STATUS(CheckSubject(user, groups));
  if (ttl && *ttl <= Duration()) {
    return BadRequest(fmt::format("time to live {}: must be positive", FormatDuration(*ttl)));
  }
  const std::string id = DrawText(entropy, kIdLength, kIdAlphabet);
  NewToken token;
  token.text = fmt::format("{}{}_{}", kTokenStart, id, Base64UrlEncode(entropy.Draw(kSecretBytes)));
  token.secret.name = std::string(kTokenNamePrefix) + id;
  token.secret.data = {
      {"hash", Sha256Hex(token.text)}, {"user", user}, {"groups", Join(groups, ",")}};
  if (ttl) token.secret.data["expires"] = FormatRfc3339(now + *ttl);
  return token;
}

Result<TokenRecord> ParseTokenSecret(std::string_view name,
                                     const std::map<std::string, std::string>& data) {
  TokenRecord record;
  if (!name.starts_with(kTokenNamePrefix)) {
    return BadRequest(fmt::format("name {}: must begin with {}", Quote(name), kTokenNamePrefix));
  }
  record.id = name.substr(kTokenNamePrefix.size());
  if (record.id.empty() || !std::ranges::all_of(record.id, IsIdCharacter)) {
    return BadRequest(fmt::format("name {}: the id must be letters and digits", Quote(name)));
  }
  record.hash = FieldOf(data, "hash");
  if (record.hash.size() != kHashLength || !std::ranges::all_of(record.hash, IsHexDigit)) {
    return BadRequest(fmt::format("data.hash: must be {} hexadecimal digits", kHashLength));
  }
  record.user = FieldOf(data, "user");
  for (std::string_view group : Split(FieldOf(data, "groups"), ',')) {
    if (!group.empty()) record.groups.emplace_back(group);
  }
  auto subject = CheckSubject(record.user, record.groups);
  if (!subject.ok()) return subject.Wrap("data");
  if (std::string_view expires = FieldOf(data, "expires"); !expires.empty()) {
    auto time = ParseRfc3339(expires);
    if (!time.ok()) return time.status().Wrap("data.expires");
    record.expires = *time;
  }
  return record;
}

std::optional<std::string_view> TokenId(std::string_view token) {
  if (!token.starts_with(kTokenStart)) return std::nullopt;
  token.remove_prefix(kTokenStart.size());
  const size_t end = token.find('_');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::string_view id = token.substr(0, end);
  const std::string_view secret = token.substr(end + 1);
  if (secret.size() != kSecretLength || !std::ranges::all_of(secret, IsSecretCharacter) ||
      !std::ranges::all_of(id, IsIdCharacter)) {
    return std::nullopt;
  }
  return id;
}

}  // namespace berth::pki
