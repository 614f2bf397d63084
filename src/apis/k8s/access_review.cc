// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/access_review.h"

#include "apis/core/rules.h"

namespace berth::apis::k8s {
namespace {

constexpr std::string_view kGroup = "authorization.k8s.io";

// The question is about a resource or about a path.
template <class Spec>
void CheckAttributes(const Spec& spec, meta::FieldErrors& errors) {
  if (spec.resource_attributes && spec.non_resource_attributes) {
    errors.Invalid(core::SpecPath().Child("nonResourceAttributes"),
                   spec.non_resource_attributes->path,
                   "cannot be specified in combination with resourceAttributes");
  }
  if (!spec.resource_attributes && !spec.non_resource_attributes) {
    errors.Invalid(core::SpecPath().Child("resourceAttributes"),
                   "",
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
}

void CheckSubject(const SubjectAccessReviewSpec& spec, meta::FieldErrors& errors) {
  CheckAttributes(spec, errors);
  if (spec.user.empty() && spec.groups.empty()) {
    errors.Invalid(core::SpecPath().Child("user"),
                   spec.user,
                   "at least one of user or group must be specified");
  }
}

void ValidateSubject(const SubjectAccessReview& object, meta::FieldErrors& errors) {
  CheckSubject(object.spec, errors);
}

void ValidateLocal(const LocalSubjectAccessReview& object, meta::FieldErrors& errors) {
  CheckSubject(object.spec, errors);
  const meta::FieldPath spec = core::SpecPath();
  if (object.spec.resource_attributes &&
      object.spec.resource_attributes->namespace_ != object.metadata.namespace_) {
    errors.Invalid(spec.Child("resourceAttributes").Child("namespace"),
                   object.spec.resource_attributes->namespace_,
                   "must match metadata.namespace");
  }
  if (object.spec.non_resource_attributes && !object.spec.resource_attributes) {
    errors.Invalid(spec.Child("nonResourceAttributes"),
                   object.spec.non_resource_attributes->path,
                   "disallowed on this kind of request");
  }
}

void ValidateSelf(const SelfSubjectAccessReview& object, meta::FieldErrors& errors) {
  CheckAttributes(object.spec, errors);
}

void ValidateRules(const SelfSubjectRulesReview& object, meta::FieldErrors& errors) {
  if (object.spec.namespace_.empty()) {
    errors.Required(core::SpecPath().Child("namespace"), "must name the namespace asked about");
  }
}

}  // namespace

constinit const meta::KindInfo kSubjectAccessReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "SubjectAccessReview",
    .plural = "subjectaccessreviews",
    .singular = "subjectaccessreview",
    .scope = meta::Scope::kCluster,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<SubjectAccessReview>(),
    .validate = meta::Hook<&ValidateSubject>,
};

constinit const meta::KindInfo kLocalSubjectAccessReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "LocalSubjectAccessReview",
    .plural = "localsubjectaccessreviews",
    .singular = "localsubjectaccessreview",
    .scope = meta::Scope::kNamespaced,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<LocalSubjectAccessReview>(),
    .validate = meta::Hook<&ValidateLocal>,
};

constinit const meta::KindInfo kSelfSubjectAccessReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "SelfSubjectAccessReview",
    .plural = "selfsubjectaccessreviews",
    .singular = "selfsubjectaccessreview",
    .scope = meta::Scope::kCluster,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<SelfSubjectAccessReview>(),
    .validate = meta::Hook<&ValidateSelf>,
};

constinit const meta::KindInfo kSelfSubjectRulesReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "SelfSubjectRulesReview",
    .plural = "selfsubjectrulesreviews",
    .singular = "selfsubjectrulesreview",
    .scope = meta::Scope::kCluster,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<SelfSubjectRulesReview>(),
    .validate = meta::Hook<&ValidateRules>,
};

}  // namespace berth::apis::k8s
