// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/reviews.h"

#include <algorithm>

namespace berth::apiserver {
namespace {

void AddOnce(std::vector<PolicyRule>& rules, PolicyRule rule) {
  if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(std::move(rule));
}

}  // namespace

Result<Decision> AnswerAccess(const Authorizer& authorizer,
                              const Identity& subject,
                              const AccessQuestion& question) {
  if (question.resource.has_value() == question.path.has_value()) {
    return BadRequest(
        "spec: exactly one of resourceAttributes and nonResourceAttributes must be given");
  }
  RequestInfo request;
  if (question.resource) {
    const ResourceQuestion& asked = *question.resource;
    request = {.is_resource = true,
               .verb = asked.verb,
               .group = authorizer.scheme().CanonicalGroup(asked.group),
               .version = asked.version,
               .namespace_ = asked.namespace_,
               .resource = asked.resource,
               .subresource = asked.subresource,
               .name = asked.name};
  } else {
    request = {.verb = question.path->verb, .path = question.path->path};
  }
  return authorizer.Decide(subject, request);
}

RulesAnswer AnswerRules(const Authorizer& authorizer,
                        const Identity& identity,
                        const std::string& namespace_) {
  RulesAnswer answer;
  for (const auto& rule : authorizer.RulesOf(identity, namespace_)) {
    if (!rule.resources.empty()) {
      PolicyRule resources = rule;
      resources.non_resource_urls.clear();
      AddOnce(answer.resource_rules, std::move(resources));
    }
    if (!rule.non_resource_urls.empty()) {
      AddOnce(answer.path_rules,
              {.verbs = rule.verbs, .non_resource_urls = rule.non_resource_urls});
    }
  }
  return answer;
}

}  // namespace berth::apiserver
