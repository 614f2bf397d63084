// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/revocation.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "cli/api/api.h"
#include "cli/commands/host_checks.h"
#include "cli/failure.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kRecords = "/api/v1/namespaces/berth-system/configmaps";

// The server's time: a revocation counts for what the server has issued until
// then.
WallTime ServerNow(Session& session, Api& api) {
  const auto response = api.Exchange({.path = "/version"});
  if (response.ok()) {
    if (const auto now = ParseHttpDate(response->headers.Get("Date"))) {
      return *now + Duration::Seconds(1);  // the header counts whole seconds
    }
  }
  return session.environment().wall_now();
}

// A name that is no key of a ConfigMap is written in hexadecimal.
std::string EntryOf(const std::string& user) {
  const bool is_plain =
      user.size() <= pki::kRevokedNameMax && std::ranges::all_of(user, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_';
      });
  return is_plain ? "user." + user : "userhex." + HexEncode(user);
}

}  // namespace

Status EnterRevocation(Session& session, const std::string& record, const std::string& entry) {
  TRY(Api * api, session.GetApi());
  Value data = Value::Object();
  data.Set(entry, FormatRfc3339(ServerNow(session, *api)));
  Value object = Value::Object();
  object.Set("data", std::move(data));
  const Api::Query query = {{"fieldManager", "berth"}};
  const std::string path = std::string(kRecords) + "/" + record;
  Status written = api->Patch(path, kMergePatch, meta::WriteJson(object), query).status();
  if (!written.Is(Reason::kNotFound)) return written;
  Value metadata = Value::Object();
  metadata.Set("name", record);
  object.Set("apiVersion", "v1");
  object.Set("kind", "ConfigMap");
  object.Set("metadata", std::move(metadata));
  written = api->Post(std::string(kRecords), object, query).status();
  // Somebody else was faster.
  if (written.Is(Reason::kAlreadyExists)) return EnterRevocation(session, record, entry);
  return written;
}

Status CheckRevocable(const std::string& user) {
  if (!user.empty() && user.size() <= pki::kRevokedUserMax) return OkStatus();
  return Advise(BadRequest(fmt::format("user {}: revoked is who has a name of 1 to {} bytes",
                                       Quote(user),
                                       pki::kRevokedUserMax)),
                "berth certificate revoke --serial HEX revokes a single certificate");
}

Status RevokeUser(Session& session, const std::string& user) {
  TRY_STATUS(CheckRevocable(user));
  return EnterRevocation(session, "revoked-users", EntryOf(user));
}

Result<std::vector<pki::Revocation>> FetchRevocations(Session& session) {
  TRY(Api * api, session.GetApi());
  std::vector<pki::Revocation> all;
  for (const std::string_view record : {"revoked-hosts", "revoked-users"}) {
    const auto object = api->Get(std::string(kRecords) + "/" + std::string(record));
    if (object.status().Is(Reason::kNotFound)) continue;  // nobody was revoked yet
    TRY_STATUS(object);
    const Value* data = object->Find("data");
    if (data == nullptr || !data->is_object()) continue;
    for (const Value::Member& member : data->members()) {
      if (!member.value.is_string()) continue;
      auto one = pki::RevocationOf(record, member.key, member.value.as_string());
      if (one) {
        all.push_back(*std::move(one));
      } else {
        session.err() << "Warning: configmap berth-system/" << record << ": entry "
                      << Quote(member.key) << " revokes nothing\n";
      }
    }
  }
  return all;
}

}  // namespace berth::cli
