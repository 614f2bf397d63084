// SPDX-License-Identifier: Apache-2.0
#include "apiserver/audit/audit_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"
#include "meta/type.h"
#include "meta/value.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

constexpr size_t kRulesMax = 1'000;

struct PolicyFile {
  std::vector<AuditRule> rules;
  std::vector<std::string> omit_stages;
};

}  // namespace

BERTH_DESCRIBE(AuditResources,
               "io.k8s.audit.v1.GroupResources",
               "Resources of a group.",
               BERTH_FIELD(group, "group", "Group; empty for the core group."),
               BERTH_FIELD(resources, "resources", "Resources; all if there are none."),
               BERTH_FIELD(resource_names, "resourceNames", "Names; all if there are none."))
BERTH_DESCRIBE(AuditRule,
               "io.k8s.audit.v1.PolicyRule",
               "How much is told of which requests.",
               BERTH_FIELD(level, "level", "None, Metadata, Request or RequestResponse."),
               BERTH_FIELD(users, "users", "Users."),
               BERTH_FIELD(user_groups, "userGroups", "Groups of users."),
               BERTH_FIELD(verbs, "verbs", "Verbs."),
               BERTH_FIELD(resources, "resources", "Resources."),
               BERTH_FIELD(namespaces, "namespaces", "Namespaces."),
               BERTH_FIELD(non_resource_urls, "nonResourceURLs", "Paths that are no resources."),
               BERTH_FIELD(omit_stages, "omitStages", "Stages at which nothing is told."))

namespace {

BERTH_DESCRIBE(PolicyFile,
               "io.k8s.audit.v1.Policy",
               "How much is told of requests.",
               BERTH_FIELD(rules, "rules", "The first that fits decides."),
               BERTH_FIELD(omit_stages, "omitStages", "Stages at which nothing is told at all."))

std::optional<AuditLevel> ParseLevel(std::string_view text) {
  if (text == "None") return AuditLevel::kNone;
  if (text == "Metadata") return AuditLevel::kMetadata;
  if (text == "Request") return AuditLevel::kRequest;
  if (text == "RequestResponse") return AuditLevel::kRequestResponse;
  return std::nullopt;
}

// Adds those of the list that anything is told at. `field` is for the message.
Status AddStages(const std::vector<std::string>& names,
                 const std::string& field,
                 std::set<AuditStage>& out) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    if (name == "ResponseStarted") {
      out.insert(AuditStage::kResponseStarted);
    } else if (name == "ResponseComplete") {
      out.insert(AuditStage::kResponseComplete);
    } else if (name != "RequestReceived" && name != "Panic") {
      return BadRequest(field + "[" + std::to_string(i) + "]: " + Quote(name) +
                        ": supported values: \"RequestReceived\", \"ResponseStarted\", "
                        "\"ResponseComplete\", \"Panic\"");
    }
  }
  return OkStatus();
}

bool Has(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}
// An empty list has everything.
bool Fits(const std::vector<std::string>& list, std::string_view text) {
  return list.empty() || Has(list, text);
}

bool FitsResource(std::string_view pattern, const RequestInfo& request) {
  if (pattern == "*") return true;
  const size_t slash = pattern.find('/');
  const std::string_view resource = pattern.substr(0, slash);
  const std::string_view subresource =
      slash == std::string_view::npos ? std::string_view() : pattern.substr(slash + 1);
  if (resource != "*" && resource != request.resource) return false;
  return subresource == request.subresource || (subresource == "*" && !request.subresource.empty());
}

bool FitsResources(const AuditResources& wanted, const RequestInfo& request) {
  if (wanted.group != request.group && wanted.group != request.requested_group) return false;
  if (!Fits(wanted.resource_names, request.name)) return false;
  return wanted.resources.empty() ||
         std::ranges::any_of(wanted.resources, [&](const std::string& pattern) {
           return FitsResource(pattern, request);
         });
}

bool FitsPath(std::string_view pattern, std::string_view path) {
  if (pattern == "*") return true;
  if (!pattern.ends_with('*')) return pattern == path;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool FitsWho(const AuditRule& rule, const Identity& identity) {
  if (!Fits(rule.users, identity.user)) return false;
  return rule.user_groups.empty() ||
         std::ranges::any_of(rule.user_groups,
                             [&](const std::string& group) { return identity.InGroup(group); });
}

bool FitsWhat(const AuditRule& rule, const RequestInfo& request) {
  if (!Fits(rule.verbs, request.verb)) return false;
  const bool of_resources = !rule.resources.empty() || !rule.namespaces.empty();
  if (!request.is_resource) {
    if (of_resources) return false;
    return rule.non_resource_urls.empty() ||
           std::ranges::any_of(rule.non_resource_urls, [&](const std::string& pattern) {
             return FitsPath(pattern, request.path);
           });
  }
  if (!rule.non_resource_urls.empty() && !of_resources) return false;
  if (!Fits(rule.namespaces, request.namespace_)) return false;
  return rule.resources.empty() ||
         std::ranges::any_of(rule.resources, [&](const AuditResources& wanted) {
           return FitsResources(wanted, request);
         });
}

}  // namespace

Result<AuditPolicy> AuditPolicy::Parse(std::string_view text) {
  TRY(const meta::Value value, meta::ParseYaml(text));
  meta::TypeMeta type;
  meta::DecodeOptions options;
  options.field_validation = meta::FieldValidation::kStrict;
  options.type_meta = &type;
  TRY(PolicyFile file, meta::FromValueAs<PolicyFile>(value, options));
  if (type.api_version != "audit.k8s.io/v1" || type.kind != "Policy") {
    return BadRequest("it is " + Quote(type.api_version) + " " + Quote(type.kind) +
                      ", not audit.k8s.io/v1 Policy");
  }
  if (file.rules.empty()) return BadRequest("rules: at least one is needed");
  if (file.rules.size() > kRulesMax) {
    return BadRequest("rules: " + std::to_string(file.rules.size()) +
                      " are too many, the limit is " + std::to_string(kRulesMax));
  }
  AuditPolicy policy;
  std::set<AuditStage> always_omitted;
  TRY_STATUS(AddStages(file.omit_stages, "omitStages", always_omitted));
  for (AuditRule& rule : file.rules) {
    const std::string field = "rules[" + std::to_string(policy.rules_.size()) + "]";
    const std::optional<AuditLevel> level = ParseLevel(rule.level);
    if (!level) {
      return BadRequest(field + ".level: " + Quote(rule.level) +
                        ": supported values: \"None\", \"Metadata\", \"Request\", "
                        "\"RequestResponse\"");
    }
    std::set<AuditStage> omitted = always_omitted;
    TRY_STATUS(AddStages(rule.omit_stages, field + ".omitStages", omitted));
    policy.rules_.push_back(
        {.level = *level, .rule = std::move(rule), .omitted = std::move(omitted)});
  }
  return policy;
}

const AuditPolicy::Rule* AuditPolicy::FindRule(const Identity& identity,
                                               const RequestInfo& request) const {
  for (const Rule& rule : rules_) {
    if (FitsWho(rule.rule, identity) && FitsWhat(rule.rule, request)) return &rule;
  }
  return nullptr;
}

AuditLevel AuditPolicy::LevelOf(const Identity& identity, const RequestInfo& request) const {
  const Rule* rule = FindRule(identity, request);
  return rule == nullptr ? AuditLevel::kNone : rule->level;
}

bool AuditPolicy::Tells(const Identity& identity,
                        const RequestInfo& request,
                        AuditStage stage) const {
  const Rule* rule = FindRule(identity, request);
  return rule != nullptr && rule->level != AuditLevel::kNone && !rule->omitted.contains(stage);
}

bool MayShowBodies(const RequestInfo& request) {
  if (!request.is_resource || request.kind == nullptr) return false;
  if (request.kind->storage == meta::Storage::kReview) return false;
  return !(request.group.empty() && request.resource == "secrets");
}

}  // namespace berth::apiserver
