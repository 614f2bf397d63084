// SPDX-License-Identifier: Apache-2.0
// certificate approve and deny: the decision about certificate requests; revoke: taking back;
// revocations: what was taken back.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/commands/revocation.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/render/output.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
constexpr std::string_view kApproved = "Approved";
constexpr std::string_view kDenied = "Denied";

bool Has(const Value& request, std::string_view decision) {
  const Value* conditions = request.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const Value& condition : conditions->items()) {
    if (condition.GetString({"type"}) == decision) return true;
  }
  return false;
}

void Add(std::string_view decision, const std::string& message, WallTime time, Value& request) {
  const std::string now = FormatRfc3339(time);
  Value condition = Value::Object();
  condition.Set("type", decision);
  condition.Set("status", "True");
  condition.Set("reason", decision == kApproved ? "ApprovedByHand" : "DeniedByHand");
  condition.Set("message", message);
  condition.Set("lastUpdateTime", now);
  condition.Set("lastTransitionTime", now);
  Value* status = request.Find("status");
  if (status == nullptr || !status->is_object()) status = &request.Set("status", Value::Object());
  Value* conditions = status->Find("conditions");
  if (conditions == nullptr || !conditions->is_array()) {
    conditions = &status->Set("conditions", Value::Array({}));
  }
  conditions->items().push_back(std::move(condition));
}

Status Decide(Session& session,
              const std::string& name,
              std::string_view decision,
              const std::string& message) {
  TRY(Api * api, session.GetApi());
  const std::string path = fmt::format("{}/{}", kRequests, name);
  TRY(Value request, api->Get(path));
  const std::string label = fmt::format("certificatesigningrequest/{}", name);
  const std::string_view other = decision == kApproved ? kDenied : kApproved;
  if (Has(request, other)) {
    return Advise(
        Conflict(fmt::format(
            "{} is {} already, which is final", label, other == kDenied ? "denied" : "approved")),
        "ask again with a new request");
  }
  const std::string_view done = decision == kApproved ? "approved" : "denied";
  if (!Has(request, decision)) {
    Add(decision, message, session.environment().wall_now(), request);
    TRY_STATUS(api->Put(path + "/approval", request));
  }
  session.out() << label << ' ' << done << '\n';
  return OkStatus();
}

Status DecideAll(Session& session, const Arguments& arguments, std::string_view decision) {
  if (arguments.words().empty()) {
    return Advise(BadRequest("the name of a request is needed"), "berth get csr");
  }
  Failures failures(session.environment());
  for (const std::string& name : arguments.words()) {
    failures.Add(Decide(session, name, decision, arguments.Text("message")));
  }
  return failures.Outcome();
}

Status RunApprove(Session& session, const Arguments& arguments) {
  return DecideAll(session, arguments, kApproved);
}
Status RunDeny(Session& session, const Arguments& arguments) {
  return DecideAll(session, arguments, kDenied);
}

bool IsSerial(std::string_view text) {
  return !text.empty() && text.size() <= 40 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

Status RunRevoke(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& serials = arguments.List("serial");
  if (arguments.words().empty() && serials.empty()) {
    return Advise(BadRequest("the name of a user, or --serial, is needed"),
                  "berth certificate revoke jane");
  }
  for (const std::string& user : arguments.words()) TRY_STATUS(CheckRevocable(user));
  for (const std::string& serial : serials) {
    if (!IsSerial(ToLower(serial))) {
      return BadRequest(
          fmt::format("--serial {}: 1 to 40 hexadecimal digits, as openssl x509 -serial shows them",
                      Quote(serial)));
    }
  }
  for (const std::string& user : arguments.words()) {
    TRY_STATUS(RevokeUser(session, user));
    session.out() << fmt::format("certificates of user {} until now are revoked\n",
                                 Printable(user));
  }
  for (const std::string& serial : serials) {
    TRY_STATUS(EnterRevocation(session, "revoked-users", "serial." + ToLower(serial)));
    session.out() << fmt::format("certificate {} is revoked\n", ToLower(serial));
  }
  return OkStatus();
}

Status RunRevocations(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const std::vector<pki::Revocation> all, FetchRevocations(session));
  if (format.is_table()) {
    session.out() << fmt::format("# {} revoked on {}; berth restore --revoked reads this\n",
                                 all.size(),
                                 FormatRfc3339(session.environment().wall_now()));
    for (const pki::Revocation& one : all) session.out() << pki::FormatRevocation(one);
    return OkStatus();
  }
  std::vector<Value> items;
  for (const pki::Revocation& one : all) {
    Value item = Value::Object();
    item.Set("kind", pki::WordOf(one.kind));
    item.Set("name", one.name);
    item.Set("until", pki::ValueOf(one));
    items.push_back(std::move(item));
  }
  return PrintValue(session.environment(), format, ListOf(std::move(items)));
}

constexpr std::array<std::string_view, 2> kListFormats = {"json", "yaml"};
constexpr std::array kListFlags = {
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "For programs.",
         .values = kListFormats},
};

constexpr std::array kRevokeFlags = {
    Flag{.name = "serial",
         .kind = FlagKind::kList,
         .value_name = "HEX",
         .help = "One certificate, by its serial number; may be repeated."},
};

constexpr std::array kFlags = {
    Flag{.name = "message",
         .letter = 'm',
         .kind = FlagKind::kText,
         .value_name = "TEXT",
         .help = "Why, for those who read the request later."},
};

constexpr std::array kChildren = {
    Command{
        .name = "approve",
        .usage = "NAME...",
        .summary = "Let the signer sign certificate requests",
        .details =
            "Look first at whom a request asks to be: berth describe csr NAME. An approved request "
            "cannot be denied any more.",
        .examples = "berth get csr\nberth certificate approve jane",
        .flags = kFlags,
        .run = &RunApprove},
    Command{.name = "deny",
            .usage = "NAME...",
            .summary = "Refuse certificate requests",
            .examples = "berth certificate deny jane -m 'not in our team'",
            .flags = kFlags,
            .run = &RunDeny},
    Command{.name = "revoke",
            .usage = "USER...",
            .summary = "Make certificates of users useless",
            .details = "Everything that was issued to the user until now is refused from now on, "
                       "on open connections too; what is issued later is good. Entries are in "
                       "configmap berth-system/revoked-users; removing one takes it back.",
            .examples = "berth certificate revoke jane\n"
                        "berth certificate revoke --serial 3f09a2",
            .flags = kRevokeFlags,
            .run = &RunRevoke},
    Command{.name = "revocations",
            .summary = "List what is revoked, of users and of hosts",
            .details = "One line for each, as berth restore --revoked reads them: a backup does "
                       "not know what is revoked after it, so keep a list that is newer.",
            .examples = "berth certificate revocations > revoked.txt",
            .flags = kListFlags,
            .run = &RunRevocations},
};

}  // namespace

Command CertificateCommand() {
  return {.name = "certificate",
          .group = "Access",
          .summary = "Decide about certificate requests, revoke certificates",
          .examples =
              "berth get csr\n"
              "berth certificate approve jane",
          .children = kChildren};
}

}  // namespace berth::cli
