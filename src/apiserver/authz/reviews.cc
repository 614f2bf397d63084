// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/reviews.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/k8s/access_review.h"
#include "apiserver/authz/pool_authorizer.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;

template <class Spec>
RequestInfo RequestOf(const Spec& spec, const meta::Scheme& scheme) {
  if (spec.resource_attributes) {
    const k8s::ResourceAttributes& asked = *spec.resource_attributes;
    return {.is_resource = true,
            .verb = asked.verb,
            .group = scheme.CanonicalGroup(asked.group),
            .version = asked.version,
            .namespace_ = asked.namespace_,
            .resource = asked.resource,
            .subresource = asked.subresource,
            .name = asked.name};
  }
  if (!spec.non_resource_attributes) return {};
  return {.verb = spec.non_resource_attributes->verb, .path = spec.non_resource_attributes->path};
}

template <class Spec>
k8s::SubjectAccessReviewStatus Answer(const Authorizer& authorizer,
                                      const Identity& subject,
                                      const Spec& spec) {
  Decision decision = authorizer.Decide(subject, RequestOf(spec, authorizer.scheme()));
  return {.allowed = decision.allowed, .reason = std::move(decision.reason)};
}

Identity SubjectOf(const k8s::SubjectAccessReviewSpec& spec) {
  return {.user = spec.user, .groups = spec.groups, .uid = spec.uid, .extra = spec.extra};
}

template <class T>
void AddOnce(std::vector<T>& list, T item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(std::move(item));
}

k8s::SubjectRulesReviewStatus AnswerRules(const Authorizer& authorizer,
                                          const Identity& sender,
                                          const std::string& namespace_) {
  k8s::SubjectRulesReviewStatus status;
  for (auto& rule : authorizer.RulesOf(sender, namespace_)) {
    if (!rule.non_resource_urls.empty()) {
      AddOnce(status.non_resource_rules,
              {.verbs = rule.verbs, .non_resource_urls = std::move(rule.non_resource_urls)});
    }
    if (!rule.resources.empty()) {
      AddOnce(status.resource_rules,
              {.verbs = std::move(rule.verbs),
               .api_groups = std::move(rule.api_groups),
               .resources = std::move(rule.resources),
               .resource_names = std::move(rule.resource_names)});
    }
  }
  if (PoolIdentityOf(authorizer.scheme(), sender)) {
    status.incomplete = true;
    status.evaluation_error =
        "the rights of a pool to itself and to what is bound to it are in no rule: ask for each "
        "with a SelfSubjectAccessReview";
  }
  return status;
}

}  // namespace

Status AnswerReview(const Authorizer& authorizer, const Identity& sender, meta::Object& review) {
  const meta::KindInfo* kind = &review.kind();
  if (kind == &k8s::kSelfSubjectAccessReviewKind) {
    auto& object = review.as<k8s::SelfSubjectAccessReview>();
    object.status = Answer(authorizer, sender, object.spec);
  } else if (kind == &k8s::kSubjectAccessReviewKind) {
    auto& object = review.as<k8s::SubjectAccessReview>();
    object.status = Answer(authorizer, SubjectOf(object.spec), object.spec);
  } else if (kind == &k8s::kLocalSubjectAccessReviewKind) {
    auto& object = review.as<k8s::LocalSubjectAccessReview>();
    object.status = Answer(authorizer, SubjectOf(object.spec), object.spec);
  } else if (kind == &k8s::kSelfSubjectRulesReviewKind) {
    auto& object = review.as<k8s::SelfSubjectRulesReview>();
    object.status = AnswerRules(authorizer, sender, object.spec.namespace_);
  } else {
    return Status(Reason::kMethodNotSupported, "not a review: " + std::string(kind->kind));
  }
  return OkStatus();
}

}  // namespace berth::apiserver
