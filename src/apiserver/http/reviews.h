// SPDX-License-Identifier: Apache-2.0
// The review kinds: questions about rights and identities that are answered at once and never
// stored.
#pragma once

#include "apis/k8s/identity_review.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/http/call.h"
#include "base/result.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "net/http.h"
#include "rt/loop.h"

namespace berth::apiserver {

// The review in the call's body, checked against its path and the kind's rules.
Result<meta::Object> DecodeReview(const meta::Scheme& scheme, Call& call);
// The review with its answer, as the client sees it.
net::HttpResponse ReviewAnswer(const Call& call, const meta::Object& review);

// The audience that our tokens are meant for, in a TokenReview.
inline constexpr std::string_view kTokenAudience = "berth";

class Reviews {
 public:
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    const Authenticator& authenticator;
    const Authorizer& authorizer;
  };
  explicit Reviews(const Deps& deps) : deps_(deps) {}

  // Answers a create of a review kind with the question and its answer. Whether the sender may ask
  // about others is RBAC's matter and was checked before.
  Result<net::HttpResponse> Answer(Call& call) const;

 private:
  apis::k8s::TokenReviewStatus Whose(const apis::k8s::TokenReviewSpec& asked) const;

  const Deps deps_;
};

}  // namespace berth::apiserver
