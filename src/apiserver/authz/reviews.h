// SPDX-License-Identifier: Apache-2.0
// Answers to questions about rights: SubjectAccessReview and its kin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/authz/authorizer.h"
#include "base/result.h"

namespace berth::apiserver {

// ResourceAttributes of a review, as sent: the group may be an alias.
struct ResourceQuestion {
  std::string namespace_;
  std::string verb;
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  std::string name;
};

struct PathQuestion {
  std::string path;
  std::string verb;
};

// Exactly one of the two.
struct AccessQuestion {
  std::optional<ResourceQuestion> resource;
  std::optional<PathQuestion> path;
};

// Whether `subject` may. Self reviews pass the sender, subject reviews the identity they name. "*"
// as verb, group or resource asks for the right to all of them, as in Kubernetes.
Result<Decision> AnswerAccess(const Authorizer& authorizer,
                              const Identity& subject,
                              const AccessQuestion& question);

// Everything that the identity may do in a namespace, without repetitions: what
// SelfSubjectRulesReview lists.
struct RulesAnswer {
  std::vector<PolicyRule> resource_rules;
  std::vector<PolicyRule> path_rules;
};
RulesAnswer AnswerRules(const Authorizer& authorizer,
                        const Identity& identity,
                        const std::string& namespace_);

}  // namespace berth::apiserver
