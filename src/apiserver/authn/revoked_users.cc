// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authn/revoked_users.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "base/strings.h"
#include "client/certificates/pool_names.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kUser = "user.";
constexpr std::string_view kUserHex = "userhex.";
constexpr std::string_view kSerial = "serial.";
constexpr WallTime kForever = WallTime::FromMicros(std::numeric_limits<int64_t>::max());

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.empty() || hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = DigitOf(hex[i]);
    const int low = DigitOf(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

RevokedUsers::RevokedUsers(const std::map<std::string, std::string>& entries) {
  for (const auto& [entry, value] : entries) {
    const auto parsed = ParseRfc3339(Trim(value));
    const WallTime until = parsed.ok() ? *parsed : kForever;
    const std::string_view key = entry;
    std::optional<std::string> user;
    if (key.starts_with(kSerial)) {
      serials_.emplace(ToLower(key.substr(kSerial.size())), until);
      continue;
    }
    if (key.starts_with(kUser)) user = key.substr(kUser.size());
    if (key.starts_with(kUserHex)) user = FromHex(key.substr(kUserHex.size()));
    if (!user) {
      LOG_WARNING(
          "configmap berth-system/{}: entry {} says nobody", kRevokedUsersRecord, Quote(key));
      continue;
    }
    WallTime& known = users_[client::IdentityOf(*user)];
    known = std::max(known, until);
  }
}

bool RevokedUsers::Covers(std::string_view user, std::string_view serial, WallTime issued) const {
  if (serials_.contains(serial)) return true;
  const auto found =
      client::IsPoolWord(user) ? users_.find(client::IdentityOf(user)) : users_.find(user);
  return found != users_.end() && issued <= found->second;
}

}  // namespace berth::apiserver
