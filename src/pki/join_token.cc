// SPDX-License-Identifier: Apache-2.0
#include "pki/join_token.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "meta/names.h"
#include "meta/quantity.h"
#include "pki/certificate_request.h"
#include "pki/digest.h"

namespace berth::pki {
namespace {

constexpr std::string_view kTokenStart = "berth1.";
constexpr std::string_view kPinStart = "sha256:";
constexpr std::string_view kIdAlphabet = "bcdfghjkmnpqrstvwxz2456789";
constexpr size_t kIdLength = 10;
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretLength = 43;
constexpr size_t kHashLength = 64;
constexpr size_t kPatternMax = 253;  // as long as a name
constexpr size_t kEntriesMax = 64;   // labels, taints or limits of one grant
constexpr std::array<std::string_view, 3> kPoolKinds = {"MachinePool", "VolumePool", "BucketPool"};

using Entries = std::map<std::string, std::string>;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '/' || c == ':';
}
bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool IsWord(std::string_view text) {
  return text.size() <= kPatternMax && std::ranges::all_of(text, IsWordCharacter);
}

std::string FieldOf(const Entries& data, const std::string& field) {
  const auto found = data.find(field);
  return found == data.end() ? std::string() : found->second;
}

Status CheckPattern(std::string_view field, std::string_view pattern) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '*';
  };
  if (pattern.empty() || pattern.size() > kPatternMax || !std::ranges::all_of(pattern, allowed)) {
    return BadRequest(
        fmt::format("{} {}: must be 1 to {} lower case letters, digits, '-', '.' and '*'",
                    field,
                    Quote(pattern),
                    kPatternMax));
  }
  return OkStatus();
}

Status CheckCount(std::string_view field, size_t count) {
  if (count <= kEntriesMax) return OkStatus();
  return BadRequest(fmt::format("{}: {} entries, at most {}", field, count, kEntriesMax));
}

// What makes `key` and `value` no label, or no taint; "" if they are one.
std::string PairProblem(std::string_view key, std::string_view value) {
  const std::vector<std::string> key_problems = meta::QualifiedNameProblems(key);
  if (!key_problems.empty()) return fmt::format("the key {}", key_problems.front());
  const std::vector<std::string> value_problems = meta::LabelValueProblems(value);
  return value_problems.empty() ? "" : fmt::format("the value {}", value_problems.front());
}

Status CheckLabels(const Entries& labels) {
  TRY_STATUS(CheckCount("labels", labels.size()));
  for (const auto& [key, value] : labels) {
    const std::string problem = PairProblem(key, value);
    if (!problem.empty()) {
      return BadRequest(fmt::format("label {}: {}", Quote(key + "=" + value), problem));
    }
  }
  return OkStatus();
}

Status CheckLimits(const Entries& limits) {
  TRY_STATUS(CheckCount("limits", limits.size()));
  for (const auto& [name, amount] : limits) {
    const std::vector<std::string> problems = meta::QualifiedNameProblems(name);
    if (!problems.empty()) {
      return BadRequest(
          fmt::format("limit {}: the resource {}", Quote(name + "=" + amount), problems.front()));
    }
    const Result<meta::Quantity> quantity = meta::Quantity::Parse(amount);
    // Entries are kept in a list with commas: what a quantity is written with has none.
    if (!quantity.ok() || *quantity < meta::Quantity() || !IsWord(amount)) {
      return BadRequest(
          fmt::format("limit {}: the amount must be a quantity that is not negative, "
                      "such as 64, 1500m or 256Gi",
                      Quote(name + "=" + amount)));
    }
  }
  return OkStatus();
}

Status CheckTaint(std::string_view taint) {
  const size_t colon = taint.rfind(':');
  const std::string_view effect =
      colon == std::string_view::npos ? std::string_view() : taint.substr(colon + 1);
  const std::string_view key = taint.substr(0, std::min(colon, taint.find('=')));
  const bool known =
      effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute";
  if (!known) {
    return BadRequest(fmt::format(
        "taint {}: must be key=value:Effect with NoSchedule, PreferNoSchedule or NoExecute",
        Quote(taint)));
  }
  const std::string_view value =
      key.size() < colon ? taint.substr(key.size() + 1, colon - key.size() - 1) : "";
  const std::string problem = PairProblem(key, value);
  if (!problem.empty()) return BadRequest(fmt::format("taint {}: {}", Quote(taint), problem));
  return OkStatus();
}

std::string FormatPairs(const Entries& pairs) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : pairs) parts.push_back(key + "=" + value);
  return Join(parts, ",");
}

Result<Entries> ParsePairs(std::string_view field, std::string_view text) {
  Entries pairs;
  for (std::string_view part : Split(text, ',')) {
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return BadRequest(fmt::format("data.{}: {} is not key=value", field, Quote(part)));
    }
    pairs[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
  return pairs;
}

std::vector<std::string> ParseList(std::string_view text) {
  std::vector<std::string> items;
  for (std::string_view part : Split(text, ',')) {
    if (!part.empty()) items.emplace_back(part);
  }
  return items;
}

}  // namespace

Status CheckGrant(const JoinGrant& grant) {
  TRY_STATUS(CheckPattern("host pattern", grant.host_pattern));
  TRY_STATUS(CheckPattern("pool pattern", grant.pool_pattern));
  if (grant.pool_kinds.empty()) return BadRequest("pool kinds: must name at least one");
  for (const std::string& kind : grant.pool_kinds) {
    if (std::ranges::find(kPoolKinds, kind) == kPoolKinds.end()) {
      return BadRequest(
          fmt::format("pool kind {}: must be MachinePool, VolumePool or BucketPool", Quote(kind)));
    }
  }
  TRY_STATUS(CheckLabels(grant.labels));
  TRY_STATUS(CheckLimits(grant.limits));
  TRY_STATUS(CheckCount("taints", grant.taints.size()));
  for (const std::string& taint : grant.taints) TRY_STATUS(CheckTaint(taint));
  return OkStatus();
}

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // the last '*' passed, and where its text began
  size_t from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Entries GrantEntries(const JoinGrant& grant) {
  return {{"hostPattern", grant.host_pattern},
          {"poolPattern", grant.pool_pattern},
          {"poolKinds", Join(grant.pool_kinds, ",")},
          {"labels", FormatPairs(grant.labels)},
          {"taints", Join(grant.taints, ",")},
          {"limits", FormatPairs(grant.limits)},
          {"replace", grant.replacement == HostReplacement::kAllowed ? "true" : "false"}};
}

Result<JoinGrant> ParseGrant(const Entries& data) {
  JoinGrant grant;
  grant.host_pattern = FieldOf(data, "hostPattern");
  grant.pool_pattern = FieldOf(data, "poolPattern");
  grant.pool_kinds = ParseList(FieldOf(data, "poolKinds"));
  TRY(grant.labels, ParsePairs("labels", FieldOf(data, "labels")));
  grant.taints = ParseList(FieldOf(data, "taints"));
  TRY(grant.limits, ParsePairs("limits", FieldOf(data, "limits")));
  if (FieldOf(data, "replace") == "true") grant.replacement = HostReplacement::kAllowed;
  const Status valid = CheckGrant(grant);
  if (!valid.ok()) return valid.Wrap("data");
  return grant;
}

Result<NewToken> MakeJoinToken(Entropy& entropy,
                               std::string_view authority_pem,
                               uint64_t incarnation,
                               const JoinGrant& grant,
                               Duration ttl,
                               WallTime now) {
  TRY_STATUS(CheckGrant(grant));
  if (ttl <= Duration()) {
    return BadRequest(fmt::format("time to live {}: must be positive", FormatDuration(ttl)));
  }
  TRY(std::string pin, CertificatePin(authority_pem));
  const std::string id = DrawText(entropy, kIdLength, kIdAlphabet);
  NewToken token;
  token.text = fmt::format("{}{}.{}.{}",
                           kTokenStart,
                           std::string_view(pin).substr(kPinStart.size()),
                           id,
                           Base64UrlEncode(entropy.Draw(kSecretBytes)));
  token.secret.name = std::string(kJoinTokenNamePrefix) + id;
  token.secret.data = GrantEntries(grant);
  token.secret.data["hash"] = Sha256Hex(token.text);
  token.secret.data["expires"] = FormatRfc3339(now + ttl);
  token.secret.data["incarnation"] = std::to_string(incarnation);
  return token;
}

Result<JoinRecord> ParseJoinSecret(std::string_view name, const Entries& data) {
  JoinRecord record;
  if (!name.starts_with(kJoinTokenNamePrefix)) {
    return BadRequest(
        fmt::format("name {}: must begin with {}", Quote(name), kJoinTokenNamePrefix));
  }
  record.id = name.substr(kJoinTokenNamePrefix.size());
  record.hash = FieldOf(data, "hash");
  if (record.hash.size() != kHashLength || !std::ranges::all_of(record.hash, IsHexDigit)) {
    return BadRequest(fmt::format("data.hash: must be {} hexadecimal digits", kHashLength));
  }
  TRY(record.grant, ParseGrant(data));
  const auto expires = ParseRfc3339(FieldOf(data, "expires"));
  if (!expires.ok()) return expires.status().Wrap("data.expires");
  record.expires = *expires;
  const auto incarnation = ParseUint(FieldOf(data, "incarnation"));
  if (!incarnation) return BadRequest("data.incarnation: must be a number");
  record.incarnation = *incarnation;
  record.redeemed_key = FieldOf(data, "redeemedKey");
  record.redeemed_host = FieldOf(data, "redeemedHost");
  return record;
}

void MarkRedeemed(Entries& data, std::string_view key_hash, std::string_view host) {
  data["redeemedKey"] = key_hash;
  data["redeemedHost"] = host;
}

Result<JoinTokenParts> ParseJoinToken(std::string_view token) {
  const auto is_secret = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  const auto is_id = [](char c) { return kIdAlphabet.contains(c); };
  const Status broken = BadRequest("join token: must be berth1.<ca>.<id>.<secret>");
  if (!token.starts_with(kTokenStart)) return broken;
  token.remove_prefix(kTokenStart.size());
  const auto parts = Split(token, '.');
  if (parts.size() != 3 || parts[0].size() != kHashLength || parts[1].size() != kIdLength ||
      parts[2].size() != kSecretLength || !std::ranges::all_of(parts[0], IsHexDigit) ||
      !std::ranges::all_of(parts[1], is_id) || !std::ranges::all_of(parts[2], is_secret)) {
    return broken;
  }
  return JoinTokenParts{.ca_pin = std::string(kPinStart) + std::string(parts[0]),
                        .id = std::string(parts[1])};
}

}  // namespace berth::pki
