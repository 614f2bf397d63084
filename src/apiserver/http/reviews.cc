// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/reviews.h"

#include "apiserver/authz/reviews.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/negotiation.h"

namespace berth::apiserver {
namespace {

std::string ApiVersionOf(const Call& call) {
  return meta::JoinApiVersion(call.info.requested_group, call.info.version);
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

Result<net::HttpResponse> Reviews::Answer(Call& call) const {
  TRY(auto review, DecodeReview(scheme_, call));
  TRY_STATUS(AnswerReview(authorizer_, call.identity, review));
  return ReviewAnswer(call, review);
}

}  // namespace berth::apiserver
