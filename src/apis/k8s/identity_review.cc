// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/identity_review.h"

#include "apis/core/rules.h"

namespace berth::apis::k8s {
namespace {

constexpr std::string_view kGroup = "authentication.k8s.io";

void ValidateToken(const TokenReview& object, meta::FieldErrors& errors) {
  if (object.spec.token.empty()) {
    errors.Required(core::SpecPath().Child("token"), "must hold the token asked about");
  }
}

}  // namespace

constinit const meta::KindInfo kSelfSubjectReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "SelfSubjectReview",
    .plural = "selfsubjectreviews",
    .singular = "selfsubjectreview",
    .scope = meta::Scope::kCluster,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<SelfSubjectReview>(),
};

constinit const meta::KindInfo kTokenReviewKind = {
    .group = kGroup,
    .version = "v1",
    .kind = "TokenReview",
    .plural = "tokenreviews",
    .singular = "tokenreview",
    .scope = meta::Scope::kCluster,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<TokenReview>(),
    .validate = meta::Hook<&ValidateToken>,
};

}  // namespace berth::apis::k8s
