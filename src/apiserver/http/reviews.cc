// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/reviews.h"

#include <algorithm>

#include "apiserver/authz/reviews.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/negotiation.h"
#include "base/strings.h"

namespace berth::apiserver {

namespace k8s = apis::k8s;

namespace {

std::string ApiVersionOf(const Call& call) {
  return meta::JoinApiVersion(call.info.requested_group, call.info.version);
}

k8s::ReviewedUser UserOf(const Identity& identity) {
  return {.username = identity.user,
          .uid = identity.uid,
          .groups = identity.groups,
          .extra = identity.extra};
}

}  // namespace

Result<meta::Object> DecodeReview(const meta::Scheme& scheme, Call& call) {
  TRY(const auto form, NegotiateBody(call.http.headers.Get("Content-Type")));
  TRY(const auto validation, ReadFieldValidation(call.query));
  const DecodeTarget target{
      .scheme = scheme, .kind = *call.info.kind, .api_version = ApiVersionOf(call)};
  TRY(auto review, DecodeObjectBody(call.http.body, form, validation, target, call.warnings));
  TRY_STATUS(CheckAgainstPath(call, review));
  meta::FieldErrors errors;
  if (call.info.kind->validate != nullptr) call.info.kind->validate(review.data(), errors);
  TRY_STATUS(errors.ToStatus(call.info.kind->kind, call.info.group, ""));
  return review;
}

net::HttpResponse ReviewAnswer(const Call& call, const meta::Object& review) {
  std::string text;
  AppendObjectText(review, ApiVersionOf(call), text);
  return JsonTextAnswer(201, text);
}

k8s::TokenReviewStatus Reviews::Whose(const k8s::TokenReviewSpec& asked) const {
  const std::string audience(kTokenAudience);
  const bool names_us = asked.audiences.empty() ||
                        std::ranges::find(asked.audiences, audience) != asked.audiences.end();
  if (!names_us) {
    return {.error =
                "tokens of this server are meant for the audience " + Quote(audience) + " only"};
  }
  const Identity* owner = deps_.authenticator.FromToken(asked.token, deps_.loop.WallNow());
  if (owner == nullptr) return {};
  k8s::TokenReviewStatus status{.authenticated = true, .user = UserOf(*owner)};
  if (!asked.audiences.empty()) status.audiences = {audience};
  return status;
}

Result<net::HttpResponse> Reviews::Answer(Call& call) const {
  TRY(auto review, DecodeReview(deps_.scheme, call));
  if (&review.kind() == &k8s::kSelfSubjectReviewKind) {
    review.as<k8s::SelfSubjectReview>().status.user_info = UserOf(call.identity);
  } else if (&review.kind() == &k8s::kTokenReviewKind) {
    auto& asked = review.as<k8s::TokenReview>();
    asked.status = Whose(asked.spec);
    // The asker has it; answers are shown, logged and kept.
    asked.spec.token.clear();
  } else {
    TRY_STATUS(AnswerReview(deps_.authorizer, call.identity, review));
  }
  return ReviewAnswer(call, review);
}

}  // namespace berth::apiserver
