// SPDX-License-Identifier: Apache-2.0
// Defends what questions about permissions must say.
#include "apis/k8s/access_review.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::Parse;

TEST(SubjectAccessReview, HasRules) {
  testing::ExpectRules<SubjectAccessReview>(
      Parse<SubjectAccessReview>(R"({"spec": {"user": "ann", "groups": ["g"],
          "extra": {"scopes": ["a", "b"]},
          "resourceAttributes": {"verb": "get", "resource": "machines", "namespace": "ns"}}})"),
      {
          {"nobody",
           [](auto& r) {
             r.spec.user = "";
             r.spec.groups.clear();
           },
           {"Invalid spec.user"}},
          {"a group", [](auto& r) { r.spec.user = ""; }, {}},
          {"nothing",
           [](auto& r) { r.spec.resource_attributes.reset(); },
           {"Invalid spec.resourceAttributes"}},
          {"two things",
           [](auto& r) { r.spec.non_resource_attributes = {"/healthz", "get"}; },
           {"Invalid spec.nonResourceAttributes"}},
      });
}

TEST(LocalSubjectAccessReview, IsAboutItsNamespace) {
  testing::ExpectRules<LocalSubjectAccessReview>(
      Parse<LocalSubjectAccessReview>(R"({"metadata": {"namespace": "ns"}, "spec": {"user": "ann",
          "resourceAttributes": {"verb": "get", "namespace": "ns"}}})"),
      {
          {"another namespace",
           [](auto& r) { r.spec.resource_attributes->namespace_ = "other"; },
           {"Invalid spec.resourceAttributes.namespace"}},
          {"a path",
           [](auto& r) {
             r.spec.resource_attributes.reset();
             r.spec.non_resource_attributes = {"/healthz", "get"};
           },
           {"Invalid spec.nonResourceAttributes"}},
      });
}

TEST(SelfSubjectReviews, HaveRules) {
  testing::ExpectRules<SelfSubjectAccessReview>(
      Parse<SelfSubjectAccessReview>(
          R"({"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}})"),
      {{"nothing",
        [](auto& r) { r.spec.non_resource_attributes.reset(); },
        {"Invalid spec.resourceAttributes"}}});
  testing::ExpectRules<SelfSubjectRulesReview>(
      Parse<SelfSubjectRulesReview>(R"({"spec": {"namespace": "ns"}})"),
      {{"nowhere", [](auto& r) { r.spec.namespace_ = ""; }, {"Required spec.namespace"}}});
}

}  // namespace
}  // namespace berth::apis::k8s
