// SPDX-License-Identifier: Apache-2.0
// certificate approve and deny: the decision about certificate requests.
#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
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
};

}  // namespace

Command CertificateCommand() {
  return {.name = "certificate",
          .group = "Access",
          .summary = "Decide about certificate requests",
          .children = kChildren};
}

}  // namespace berth::cli
