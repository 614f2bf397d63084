// SPDX-License-Identifier: Apache-2.0
// The review kinds: questions about rights that are answered at once and never stored.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "apiserver/http/call.h"
#include "base/result.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "net/http.h"

namespace berth::apiserver {

// The review in the call's body, checked against its path and the kind's rules.
Result<meta::Object> DecodeReview(const meta::Scheme& scheme, Call& call);
// The review with its answer, as the client sees it.
net::HttpResponse ReviewAnswer(const Call& call, const meta::Object& review);

class Reviews {
 public:
  Reviews(const meta::Scheme& scheme, const Authorizer& authorizer)
      : scheme_(scheme), authorizer_(authorizer) {}

  // Answers a create of a review kind with the question and its answer. Whether the sender may ask
  // about others is RBAC's matter and was checked before.
  Result<net::HttpResponse> Answer(Call& call) const;

 private:
  const meta::Scheme& scheme_;
  const Authorizer& authorizer_;
};

}  // namespace berth::apiserver
