// SPDX-License-Identifier: Apache-2.0
// Questions about identities: who am I, and whose token is this? They are asked with a create and
// answered in status; nothing is stored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "meta/kind.h"

namespace berth::apis::k8s {

struct ReviewedUser {
  std::string username;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool operator==(const ReviewedUser&) const = default;
};
BERTH_DESCRIBE(ReviewedUser,
               "io.k8s.api.authentication.v1.UserInfo",
               "Someone whom the server knows.",
               BERTH_FIELD(username, "username", "The name that rights are given to."),
               BERTH_FIELD(uid, "uid", "Tells users of one name in the course of time apart."),
               BERTH_FIELD(groups, "groups", "The user's groups.", {.list_type = "atomic"}),
               BERTH_FIELD(extra, "extra", "What else is known about the user."))

struct SelfSubjectReviewStatus {
  ReviewedUser user_info;
  bool operator==(const SelfSubjectReviewStatus&) const = default;
};
BERTH_DESCRIBE(SelfSubjectReviewStatus,
               "io.k8s.api.authentication.v1.SelfSubjectReviewStatus",
               "The answer.",
               BERTH_FIELD(user_info, "userInfo", "Who the asker is."))

struct SelfSubjectReview {
  meta::ObjectMeta metadata;
  SelfSubjectReviewStatus status;
};
BERTH_DESCRIBE(SelfSubjectReview,
               "io.k8s.api.authentication.v1.SelfSubjectReview",
               "Asks who the asker is to the server.",
               BERTH_FIELD(metadata, "metadata", "Unused."),
               BERTH_FIELD(status, "status", "The answer."))

struct TokenReviewSpec {
  std::string token;
  std::vector<std::string> audiences;
  bool operator==(const TokenReviewSpec&) const = default;
};
BERTH_DESCRIBE(TokenReviewSpec,
               "io.k8s.api.authentication.v1.TokenReviewSpec",
               "The token asked about.",
               BERTH_FIELD(token, "token", "The bearer token."),
               BERTH_FIELD(audiences,
                           "audiences",
                           "Whom the token must be meant for; empty for the server itself.",
                           {.list_type = "atomic"}))

struct TokenReviewStatus {
  bool authenticated = false;
  ReviewedUser user;
  std::vector<std::string> audiences;
  std::string error;
  bool operator==(const TokenReviewStatus&) const = default;
};
BERTH_DESCRIBE(TokenReviewStatus,
               "io.k8s.api.authentication.v1.TokenReviewStatus",
               "The answer.",
               BERTH_FIELD(authenticated, "authenticated", "Whether the token is valid."),
               BERTH_FIELD(user, "user", "Whose token it is."),
               BERTH_FIELD(audiences,
                           "audiences",
                           "Those of the audiences asked about that the token is meant for.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(error, "error", "Why the token could not be checked."))

struct TokenReview {
  meta::ObjectMeta metadata;
  TokenReviewSpec spec;
  TokenReviewStatus status;
};
BERTH_DESCRIBE(TokenReview,
               "io.k8s.api.authentication.v1.TokenReview",
               "Asks whose token this is.",
               BERTH_FIELD(metadata, "metadata", "Unused."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

extern const meta::KindInfo kSelfSubjectReviewKind;
extern const meta::KindInfo kTokenReviewKind;
inline const meta::KindInfo& BerthKind(meta::Tag<SelfSubjectReview>) {
  return kSelfSubjectReviewKind;
}
inline const meta::KindInfo& BerthKind(meta::Tag<TokenReview>) { return kTokenReviewKind; }

}  // namespace berth::apis::k8s
