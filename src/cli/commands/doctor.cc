// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/doctor.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/host_checks.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/server_load.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/render/output.h"
#include "cli/render/palette.h"
#include "cli/session/session.h"
#include "pki/certificate.h"

namespace berth::cli {
namespace {

using meta::Value;

// Certificates are renewed well before; nearer than this somebody should look.
constexpr Duration kCertificateSoon = Duration::Hours(7 * 24);
// The Date header has whole seconds; certificates forgive five minutes.
constexpr Duration kSkewWarn = Duration::Seconds(5);
constexpr Duration kSkewFail = Duration::Minutes(5);
constexpr Duration kAnswerSlow = Duration::Millis(500);
constexpr Duration kAnswerLimit = Duration::Seconds(5);

Finding CheckKubeconfig(Session& session) {
  const KubeconfigFiles files = session.kubeconfig_files();
  if (files.paths.empty()) {
    return {Verdict::kFail,
            "kubeconfig",
            "none found",
            "start a server with berth up, or set KUBECONFIG"};
  }
  const auto config = session.LoadConfig();
  if (!config.ok()) {
    return {Verdict::kFail,
            "kubeconfig",
            FailureOf(config.status()).message,
            "correct the file, or set KUBECONFIG to another one"};
  }
  for (const std::string& path : files.paths) {
    if (IsReadableByOthers(path)) {
      return {Verdict::kWarn,
              "kubeconfig",
              fmt::format("{} can be read by others", Printable(path)),
              fmt::format("chmod 600 {}", Printable(path))};
    }
  }
  return {Verdict::kOk, "kubeconfig", Printable(Join(files.paths, ", ")), ""};
}

Finding CheckCertificate(std::string_view title, const std::string& pem, WallTime now) {
  const auto certificate = pki::ParseCertificatePem(pem);
  if (!certificate.ok()) {
    return {Verdict::kFail,
            title,
            Printable(certificate.status().message()),
            "replace it in the kubeconfig"};
  }
  const std::string until = FormatRfc3339(certificate->not_after);
  if (now < certificate->not_before) {
    return {Verdict::kFail,
            title,
            fmt::format("not valid before {}", FormatRfc3339(certificate->not_before)),
            "compare the clock of this host with the server's"};
  }
  if (now >= certificate->not_after) {
    return {Verdict::kFail,
            title,
            fmt::format("expired on {}", until),
            "fetch the server's current kubeconfig"};
  }
  if (certificate->not_after - now < kCertificateSoon) {
    return {Verdict::kWarn,
            title,
            fmt::format("expires in {}", FormatAge(certificate->not_after - now)),
            "fetch the server's current kubeconfig"};
  }
  return {Verdict::kOk, title, fmt::format("valid until {}", until), ""};
}

Finding CheckClock(const Response& response, WallTime now) {
  const auto theirs = ParseHttpDate(response.headers.Get("Date"));
  if (!theirs) return {Verdict::kOk, "clock", "the server does not tell its time", ""};
  const Duration ahead = now - *theirs;
  const Duration skew = ahead < Duration() ? Duration() - ahead : ahead;
  const std::string text =
      fmt::format("{} from the server's", FormatDuration(Duration::Seconds(skew.seconds())));
  if (skew < kSkewWarn) return {Verdict::kOk, "clock", text, ""};
  return {skew < kSkewFail ? Verdict::kWarn : Verdict::kFail,
          "clock",
          text,
          "synchronise the clocks of both hosts (chrony, systemd-timesyncd)"};
}

// /readyz?verbose has one line per check: "[+]ping ok", "[-]store failed: reason".
Finding CheckReady(Api& api) {
  Request request{.path = "/readyz", .query = {{"verbose", "true"}}};
  const auto response = api.Exchange(std::move(request));
  if (!response.ok()) {
    return {Verdict::kFail, "ready", FailureOf(response.status()).message, "see the server's log"};
  }
  if (response->status == 200) return {Verdict::kOk, "ready", "/readyz says ok", ""};
  std::vector<std::string> bad;
  for (const std::string_view line : Split(response->body, '\n')) {
    if (line.starts_with("[-]")) bad.push_back(Printable(Trim(line.substr(3))));
  }
  return {Verdict::kFail,
          "ready",
          bad.empty() ? fmt::format("/readyz answers {}", response->status) : Join(bad, "; "),
          "see the server's log"};
}

Finding CheckIdentity(Api& api) {
  Value review = Value::Object();
  review.Set("apiVersion", "authentication.k8s.io/v1");
  review.Set("kind", "SelfSubjectReview");
  const auto answer = api.Post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review);
  if (answer.ok()) {
    const auto user = answer->GetString({"status", "userInfo", "username"});
    return {Verdict::kOk, "identity", fmt::format("known as {}", Printable(user)), ""};
  }
  // Who is not known gets no further than Unauthorized.
  if (answer.status().Is(Reason::kNotFound) || answer.status().Is(Reason::kForbidden)) {
    return {Verdict::kOk, "identity", "accepted; the server does not tell as whom", ""};
  }
  const Failure failure = FailureOf(answer.status());
  return {Verdict::kFail, "identity", failure.message, failure.next_step};
}

// Poollets with wide rights. Nothing is said if there are none, or if one may not look.
void CheckLegacyPools(Api& api, std::vector<Finding>& out) {
  const auto bindings = api.Get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                                {{"labelSelector", std::string(kLegacyLabel)}});
  const Value* items = bindings.ok() ? bindings->Find("items") : nullptr;
  if (items == nullptr || !items->is_array() || items->items().empty()) return;
  std::vector<std::string> users;
  for (const Value& binding : items->items()) {
    const Value* subjects = binding.Find("subjects");
    if (subjects == nullptr || !subjects->is_array()) continue;
    for (const Value& subject : subjects->items()) {
      users.emplace_back(Printable(subject.GetString({"name"})));
    }
  }
  out.push_back({Verdict::kWarn,
                 "legacy poollets",
                 fmt::format("may read every secret: {}", Join(users, ", ")),
                 "berth pool allow-legacy NAME --withdraw, once they can do with less"});
}

// R3_4: nothing is moved away from many silent hosts at once.
void CheckBrake(Api& api, std::vector<Finding>& out) {
  const auto status = api.Get("/api/v1/namespaces/berth-system/configmaps/cluster-status");
  if (!status.ok()) return;
  const std::string_view lost = status->GetString({"data", "massLoss"});
  if (lost.empty()) return;
  out.push_back({Verdict::kWarn,
                 "hosts",
                 fmt::format("{}: nothing is moved or replaced", Printable(lost)),
                 "look at the network; berth pool brake --release if the hosts are really gone"});
}

// Each of several by itself: `berth` would hide that one is gone, and only the one that leads has
// controllers.
void CheckEach(Session& session, const Connection& all, std::vector<Finding>& out) {
  if (all.others.empty()) return;
  std::vector<std::string> urls = {all.server};
  urls.insert(urls.end(), all.others.begin(), all.others.end());
  for (const std::string& url : urls) {
    Connection one = all;
    one.server = url;
    one.others.clear();
    one.request_timeout = kAnswerLimit;
    const auto transport = session.environment().connect(one);
    const auto ready = transport.ok() ? (*transport)->Send({.path = "/readyz"})
                                      : Result<Response>(transport.status());
    constexpr std::string_view kTitle = "servers";
    if (!ready.ok()) {
      out.push_back(
          {Verdict::kWarn,
           kTitle,
           FailureOf(ready.status()).message,
           fmt::format("is it running? berth goes on with the others of {}", urls.size())});
    } else if (ready->status != 200) {
      out.push_back({Verdict::kWarn,
                     kTitle,
                     fmt::format("{} is not ready: {}", Printable(url), Printable(ready->body)),
                     "look at its log"});
    } else {
      out.push_back({Verdict::kOk, kTitle, fmt::format("{} is ready", Printable(url)), ""});
    }
    if (ready.ok()) CheckLoadOf(url, **transport, out);
  }
}

void CheckServer(Session& session, std::vector<Finding>& out) {
  const auto connection = session.GetConnection();
  if (!connection.ok()) {
    const Failure failure = FailureOf(connection.status());
    out.push_back({Verdict::kFail, "context", failure.message, failure.next_step});
    return;
  }
  const WallTime now = session.environment().wall_now();
  if (!connection->certificate_authority.empty()) {
    out.push_back(CheckCertificate("server CA", connection->certificate_authority, now));
  }
  if (!connection->client_certificate.empty()) {
    out.push_back(CheckCertificate("your certificate", connection->client_certificate, now));
  }
  const auto api = session.GetApi();
  if (!api.ok()) {
    const Failure failure = FailureOf(api.status());
    out.push_back({Verdict::kFail, "server", failure.message, failure.next_step});
    return;
  }
  const Time asked = session.environment().now();
  const auto version = (*api)->Exchange({.path = "/version"});
  const Duration took = session.environment().now() - asked;
  if (!version.ok()) {
    out.push_back({Verdict::kFail,
                   "server",
                   FailureOf(version.status()).message,
                   fmt::format("is it running at {}? start it with berth up",
                               Printable(connection->server))});
    return;
  }
  out.push_back({took < kAnswerSlow ? Verdict::kOk : Verdict::kWarn,
                 "server",
                 fmt::format("{} answers in {} ms", Printable(connection->server), took.millis()),
                 took < kAnswerSlow ? "" : "look at the load of the server and the way to it"});
  CheckEach(session, *connection, out);
  out.push_back(CheckClock(*version, now));
  out.push_back(CheckReady(**api));
  out.push_back(CheckIdentity(**api));
  if (connection->others.empty()) CheckLoad(**api, out);
  CheckLegacyPools(**api, out);
  CheckBrake(**api, out);
}

std::string_view WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarn: return "warn";
    case Verdict::kFail: return "fail";
  }
  return "fail";
}

std::string PaintedWord(const Palette& palette, Verdict verdict) {
  const std::string word = fmt::format("{:<4}", WordOf(verdict));
  if (verdict == Verdict::kOk) return palette.Good(word);
  return verdict == Verdict::kWarn ? palette.Warning(word) : palette.Bad(word);
}

void PrintFindings(Session& session, const std::vector<Finding>& findings) {
  const Palette palette(session.environment());
  for (const Finding& finding : findings) {
    session.out() << fmt::format("{}  {:<18}{}\n",
                                 PaintedWord(palette, finding.verdict),
                                 finding.title,
                                 Printable(finding.text));
    if (!finding.next_step.empty()) {
      session.out() << fmt::format("      {:<18}next: {}\n", "", finding.next_step);
    }
  }
}

Status RunDoctor(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  const std::vector<Finding> findings = Examine(session, arguments.Text("data-dir"));
  if (format.is_table()) {
    PrintFindings(session, findings);
  } else {
    std::vector<Value> items;
    for (const Finding& finding : findings) items.push_back(ValueOf(finding));
    TRY_STATUS(PrintValue(session.environment(), format, ListOf(std::move(items))));
  }
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::kFail) return FailQuietly();
  }
  return OkStatus();
}

constexpr std::array<std::string_view, 2> kFormats = {"json", "yaml"};
constexpr std::array kFlags = {
    Flag{.name = "data-dir",
         .kind = FlagKind::kText,
         .value_name = "FOLDER",
         .help = "Also the disk of a server on this host.",
         .variable = "BERTH_DATA_DIR",
         .completion = Completion::kFiles},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "For programs.",
         .values = kFormats},
};

}  // namespace

std::vector<Finding> Examine(Session& session, const std::string& data_dir) {
  std::vector<Finding> findings = {CheckKubeconfig(session)};
  CheckServer(session, findings);
  findings.push_back(CheckDescriptors());
  if (!data_dir.empty()) {
    findings.push_back(CheckDiskSpace(data_dir));
    findings.push_back(CheckSyncSpeed(data_dir, session.environment()));
  }
  return findings;
}

Value ValueOf(const Finding& finding) {
  Value out = Value::Object();
  out.Set("check", finding.title);
  out.Set("verdict", WordOf(finding.verdict));
  out.Set("text", finding.text);
  if (!finding.next_step.empty()) out.Set("next", finding.next_step);
  return out;
}

Command DoctorCommand() {
  return {.name = "doctor",
          .group = "Server",
          .summary = "Check kubeconfig, server, clocks, certificates and disk",
          .details = "Exits with 1 if something is broken; every finding says what to do.",
          .examples = "berth doctor\nberth doctor --data-dir /var/lib/berth",
          .flags = kFlags,
          .run = &RunDoctor};
}

}  // namespace berth::cli
