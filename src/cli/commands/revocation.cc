// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/revocation.h"

#include <ostream>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "cli/api/api.h"
#include "cli/commands/host_checks.h"
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
