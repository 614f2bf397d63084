// SPDX-License-Identifier: Apache-2.0
// ca rotate, status, bundle and retire: changing the cluster's authority for another one. What is
// wished is written into the ConfigMap berth-system/authority; the server that leads does it.
#include <fmt/core.h>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/patience.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/value.h"
#include "pki/certificate.h"
#include "pki/entropy.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kRecord = "authority";
constexpr std::string_view kPath = "/api/v1/namespaces/berth-system/configmaps/authority";

Result<Value> ReadAuthority(Session& session) {
  TRY(Api * api, session.GetApi());
  Result<Value> record = api->Get(std::string(kPath));
  if (record.status().Is(Reason::kNotFound)) {
    return Unavailable("no server has said yet what its authority is: it does when it leads");
  }
  return record;
}

std::string EntryOf(const Value& record, std::string_view name) {
  return std::string(record.GetString({"data", name}));
}

// Writes the wish and waits for the server's answer to it.
Status Ask(Session& session, Value data, Duration limit) {
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY_STATUS(ReadAuthority(session));
  const std::string id = HexEncode(pki::SystemEntropy().Draw(8));
  data.Set("requestId", id);
  Value object = Value::Object();
  object.Set("data", std::move(data));
  TRY_STATUS(api->Patch(
      std::string(kPath), kMergePatch, meta::WriteJson(object), {{"fieldManager", "berth"}}));
  TRY(const Resource resource, discovery->FindByWord("configmaps"));
  std::string answer;
  const ObjectTest answered = [&](const Value* record) -> Result<bool> {
    if (record == nullptr || EntryOf(*record, "answerId") != id) return false;
    answer = EntryOf(*record, "answer");
    return true;
  };
  TRY_STATUS(AwaitObject(
      *api,
      {.resource = resource, .namespace_ = "berth-system", .name = std::string(kRecord)},
      answered,
      Patience(session.environment(), limit),
      "the server that leads to answer"));
  return answer == "ok" ? OkStatus() : Conflict(answer);
}

// Whom servers have seen with a good certificate of the authority that retires; of several servers
// what each one says.
bool PrintUsers(Session& session, const Value& record) {
  const Value* data = record.Find("data");
  if (data == nullptr || !data->is_object()) return false;
  std::set<std::string> lines;
  for (const auto& [name, value] : data->members()) {
    if (!name.starts_with("seen.") || !value.is_string()) continue;
    for (const std::string_view user : Split(value.as_string(), ';')) {
      if (!Trim(user).empty()) lines.insert(Printable(Trim(user)));
    }
  }
  for (const std::string& line : lines) {
    session.out() << fmt::format("{:<12} user {}\n", "still old", line);
  }
  return !lines.empty();
}

void PrintStatus(Session& session, const Value& record) {
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) session.out() << fmt::format("{:<12} {}\n", name, value);
  };
  const std::string phase = EntryOf(record, "phase");
  const std::string retiring = EntryOf(record, "retiring");
  line("serving", EntryOf(record, "serving"));
  line("signing", EntryOf(record, "signing"));
  line("retiring", retiring);
  line("phase", phase);
  if (phase == "Learning") {
    line("switches", "after " + EntryOf(record, "switchAfter") + ", once no host waits");
  }
  const std::string waiting = EntryOf(record, "waiting");
  for (std::string_view host : Split(waiting, ';')) line("still old", std::string(Trim(host)));
  const bool has_users = PrintUsers(session, record);
  if (phase == "Switched" && waiting.empty()) {
    line("next",
         has_users ? "no host uses the old one any more, people do: berth ca retire locks them out"
                   : "no host uses the old one any more: berth ca retire");
  }
}

Status RunStatus(Session& session, const Arguments&) {
  TRY(const Value record, ReadAuthority(session));
  PrintStatus(session, record);
  return OkStatus();
}

Status RunBundle(Session& session, const Arguments&) {
  TRY(const Value record, ReadAuthority(session));
  session.out() << EntryOf(record, "ca.crt");
  return OkStatus();
}

Status RunRotate(Session& session, const Arguments& arguments) {
  Value data = Value::Object();
  data.Set("request", "rotate");
  data.Set("requestGrace", FormatDuration(arguments.Span("grace")));
  TRY_STATUS(Ask(session, std::move(data), arguments.Span("timeout")));
  TRY(const Value record, ReadAuthority(session));
  session.out() << "there are two authorities now; certificates of both are good\n";
  PrintStatus(session, record);
  session.out() << "next         give people the certificates of `berth ca bundle`, then berth ca "
                   "status, berth ca retire\n";
  return OkStatus();
}

// Who asks would be the first to be locked out.
Status CheckOwn(Session& session, const std::string& retiring) {
  TRY(const Connection connection, session.GetConnection());
  const auto own = pki::ParseCertificatePem(connection.client_certificate);
  if (retiring.empty() || !own.ok() || own->issuer != retiring.substr(0, retiring.find(' '))) {
    return OkStatus();
  }
  return Advise(
      Conflict(fmt::format("the certificate that you use is of authority {} itself", own->issuer)),
      "use a newer one: the server keeps the kubeconfig in its data folder up to date");
}

Status RunRetire(Session& session, const Arguments& arguments) {
  TRY(const Value before, ReadAuthority(session));
  const std::string retiring = EntryOf(before, "retiring");
  TRY_STATUS(CheckOwn(session, retiring));
  Value data = Value::Object();
  data.Set("request", "retire");
  data.Set("requestForce", arguments.Switch("force") ? "true" : "false");
  const Status retired = Ask(session, std::move(data), arguments.Span("timeout"));
  if (retired.Is(Reason::kConflict) && !retiring.empty()) {
    return Advise(retired, "wait (berth ca status), or lock them out with --force");
  }
  TRY_STATUS(retired);
  session.out() << fmt::format("authority {} is retired: its certificates are refused\n",
                               retiring.substr(0, retiring.find(' ')));
  return OkStatus();
}

constexpr Flag kTimeout{.name = "timeout",
                        .kind = FlagKind::kDuration,
                        .value_name = "TIME",
                        .help = "How long to wait for the server's answer.",
                        .fallback = "30s"};
constexpr std::array kRotateFlags = {
    Flag{.name = "grace",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long the server's own certificate stays one of the old authority, so that "
                 "people can learn the new one.",
         .fallback = "24h"},
    kTimeout};
constexpr std::array kRetireFlags = {
    Flag{.name = "force",
         .help = "Although hosts still use it, or the server does. Those have to join again."},
    kTimeout};

constexpr std::array kChildren = {
    Command{.name = "status",
            .summary = "Which authorities are trusted, and who still uses the old one",
            .examples = "berth ca status",
            .run = &RunStatus},
    Command{.name = "rotate",
            .usage = "[--grace TIME]",
            .summary = "Make a second authority, which takes over",
            .details =
                "From then on both are trusted. Certificates of hosts and people come from the new "
                "one; hosts that are connected renew theirs at once and learn it. The server's own "
                "follows after the grace time, when every host with a good certificate has learnt "
                "it. Then berth ca retire.",
            .examples = "berth ca rotate\nberth ca rotate --grace 0s",
            .flags = kRotateFlags,
            .run = &RunRotate},
    Command{.name = "bundle",
            .summary = "Print the certificates to trust, for certificate-authority-data",
            .examples = "berth ca bundle > ca.crt",
            .run = &RunBundle},
    Command{.name = "retire",
            .usage = "[--force]",
            .summary = "Trust the old authority no longer",
            .details = "Refused while hosts use certificates of it that are still good. People's "
                       "certificates of it end with it, on open connections too.",
            .examples = "berth ca retire",
            .flags = kRetireFlags,
            .run = &RunRetire},
};

}  // namespace

Command CaCommand() {
  return {.name = "ca",
          .group = "Access",
          .usage = "COMMAND",
          .summary = "Change the cluster's certificate authority for another one",
          .examples =
              "berth ca status\n"
              "berth ca rotate",
          .children = kChildren};
}

}  // namespace berth::cli
