// SPDX-License-Identifier: Apache-2.0
// Answers to questions about rights: SubjectAccessReview and its kin.
#pragma once

#include "apiserver/authz/authorizer.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// Fills in the status of a SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview
// or SelfSubjectRulesReview that `sender` has sent; self reviews are about the sender. API groups
// may be aliases; "*" as verb, group or resource asks for the right to all of them. The object has
// passed validation; a question about nothing is answered with no. MethodNotSupported for other
// kinds.
Status AnswerReview(const Authorizer& authorizer, const Identity& sender, meta::Object& review);

}  // namespace berth::apiserver
