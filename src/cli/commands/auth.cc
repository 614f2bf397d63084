// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kReviews = "/apis/authorization.k8s.io/v1";

Value Review(std::string_view api_version, std::string_view kind, Value spec) {
  Value out = Value::Object();
  out.Set("apiVersion", api_version);
  out.Set("kind", kind);
  out.Set("metadata", Value::Object());
  out.Set("spec", std::move(spec));
  return out;
}

// "machines", "machines/status", "machine/web" asks about kinds; "/metrics" about a path.
Result<Value> AccessSpec(Session& session, const Arguments& arguments) {
  const auto& words = arguments.words();
  if (words.size() < 2 || words.size() > 3) {
    return Advise(BadRequest("a verb and a kind are needed"), "berth auth can-i create machines");
  }
  Value attributes = Value::Object();
  attributes.Set("verb", words[0]);
  Value spec = Value::Object();
  if (words[1].starts_with('/')) {
    attributes.Set("path", words[1]);
    spec.Set("nonResourceAttributes", std::move(attributes));
    return spec;
  }
  const auto parts = Split(words[1], '/');
  std::string name(parts.size() > 1 ? parts[1] : "");
  if (words.size() == 3) name = words[2];
  if (parts[0] == "*") {
    attributes.Set("group", "*");
    attributes.Set("resource", "*");
  } else {
    TRY(Discovery * discovery, session.GetDiscovery());
    TRY(const Resource resource, discovery->FindByWord(parts[0]));
    attributes.Set("group", resource.group);
    attributes.Set("resource", resource.plural);
  }
  if (!arguments.Switch("all-namespaces")) {
    TRY(const std::string space, session.Namespace());
    attributes.Set("namespace", space);
  }
  if (!arguments.Text("subresource").empty()) {
    attributes.Set("subresource", arguments.Text("subresource"));
  }
  if (!name.empty()) attributes.Set("name", std::move(name));
  spec.Set("resourceAttributes", std::move(attributes));
  return spec;
}

std::string ListText(const Value& rule, std::string_view key) {
  std::vector<std::string> parts;
  const Value* list = rule.Find(key);
  if (list == nullptr || !list->is_array()) return "[]";
  for (const Value& item : list->items()) {
    if (item.is_string()) parts.push_back(item.as_string());
  }
  return fmt::format("[{}]", Join(parts, " "));
}

// "machines.compute.ironcore.dev" for every pair of a rule.
std::string ResourceText(const Value& rule) {
  std::vector<std::string> parts;
  const Value* resources = rule.Find("resources");
  const Value* groups = rule.Find("apiGroups");
  if (resources == nullptr || !resources->is_array()) return "";
  for (const Value& resource : resources->items()) {
    if (!resource.is_string()) continue;
    if (groups == nullptr || !groups->is_array() || groups->items().empty()) {
      parts.push_back(resource.as_string());
      continue;
    }
    for (const Value& group : groups->items()) {
      const bool named = group.is_string() && !group.as_string().empty();
      parts.push_back(named ? fmt::format("{}.{}", resource.as_string(), group.as_string())
                            : resource.as_string());
    }
  }
  return Join(parts, ",");
}

Status PrintRules(Session& session, const Arguments& arguments) {
  TRY(Api * api, session.GetApi());
  TRY(const std::string space, session.Namespace());
  Value spec = Value::Object();
  spec.Set("namespace", space);
  TRY(const Value answer,
      api->Post(fmt::format("{}/selfsubjectrulesreviews", kReviews),
                Review("authorization.k8s.io/v1", "SelfSubjectRulesReview", std::move(spec))));
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) return PrintValue(session.environment(), format, answer);
  TextTable table({"Resources", "Non-Resource URLs", "Resource Names", "Verbs"},
                  arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown);
  for (const std::string_view list : {"resourceRules", "nonResourceRules"}) {
    const Value* rules = answer.Get({"status", list});
    if (rules == nullptr || !rules->is_array()) continue;
    for (const Value& rule : rules->items()) {
      table.AddRow({ResourceText(rule),
                    ListText(rule, "nonResourceURLs"),
                    ListText(rule, "resourceNames"),
                    ListText(rule, "verbs")});
    }
  }
  session.out() << table.Flush();
  return OkStatus();
}

Status RunCanI(Session& session, const Arguments& arguments) {
  if (arguments.Switch("list")) return PrintRules(session, arguments);
  TRY(Value spec, AccessSpec(session, arguments));
  TRY(Api * api, session.GetApi());
  TRY(const Value answer,
      api->Post(fmt::format("{}/selfsubjectaccessreviews", kReviews),
                Review("authorization.k8s.io/v1", "SelfSubjectAccessReview", std::move(spec))));
  const Value* allowed = answer.Get({"status", "allowed"});
  const bool may =
      allowed != nullptr && allowed->type() == Value::Type::kBool && allowed->as_bool();
  if (!arguments.Switch("quiet")) {
    const std::string reason = Printable(answer.GetString({"status", "reason"}));
    session.out() << (may ? "yes" : "no") << (may || reason.empty() ? "" : " - " + reason) << "\n";
  }
  return may ? OkStatus() : FailQuietly();
}

Status RunWhoAmI(Session& session, const Arguments& arguments) {
  TRY(Api * api, session.GetApi());
  Value review = Value::Object();
  review.Set("apiVersion", "authentication.k8s.io/v1");
  review.Set("kind", "SelfSubjectReview");
  auto asked = api->Post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review);
  if (asked.status().Is(Reason::kNotFound)) {
    return Advise(NotFound("the server does not tell who you are"),
                  "see what you may do: berth auth can-i --list");
  }
  TRY(const Value answer, std::move(asked));
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) return PrintValue(session.environment(), format, answer);
  TextTable table({"Attribute", "Value"});
  table.AddRow({"Username", std::string(answer.GetString({"status", "userInfo", "username"}))});
  if (const auto uid = answer.GetString({"status", "userInfo", "uid"}); !uid.empty()) {
    table.AddRow({"UID", std::string(uid)});
  }
  const Value* user = answer.Get({"status", "userInfo"});
  if (user != nullptr) table.AddRow({"Groups", ListText(*user, "groups")});
  session.out() << table.Flush();
  return OkStatus();
}

constexpr std::array kCanIFlags = {
    Flag{.name = "list", .help = "Everything that you may do in the namespace."},
    Flag{.name = "quiet", .letter = 'q', .help = "Only the exit code: 0 yes, 1 no."},
    Flag{.name = "subresource",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Ask about this part: status, scale."},
    flags::kAllNamespaces,
    flags::kNoHeaders,
    flags::kOutput,
};
constexpr std::array kWhoAmIFlags = {flags::kOutput};

constexpr std::array kChildren = {
    Command{.name = "can-i",
            .usage = "VERB KIND[/NAME] | VERB /PATH | --list",
            .summary = "Ask whether you may do something",
            .details = "Prints yes or no and exits with 0 or 1.",
            .examples = "berth auth can-i create machines\n"
                        "berth auth can-i get secrets -n prod\n"
                        "berth auth can-i --list",
            .flags = kCanIFlags,
            .run = &RunCanI},
    Command{.name = "whoami",
            .summary = "Show who the server takes you for",
            .examples = "berth auth whoami\n"
                        "berth auth whoami -o yaml",
            .flags = kWhoAmIFlags,
            .run = &RunWhoAmI},
};

}  // namespace

Command AuthCommand() {
  return {.name = "auth",
          .group = "Access",
          .summary = "Ask about rights and identity",
          .examples =
              "berth auth whoami\n"
              "berth auth can-i create machines -n shop",
          .children = kChildren};
}

}  // namespace berth::cli
