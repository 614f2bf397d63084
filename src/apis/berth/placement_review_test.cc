// SPDX-License-Identifier: Apache-2.0
// Defends the rules of PlacementReview: one question at a time, and a bounded one.
#include "apis/berth/placement_review.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::berth_dev {
namespace {

TEST(PlacementReview, IsAboutExactlyOneObject) {
  const auto valid = testing::Parse<PlacementReview>(R"({
    "apiVersion": "berth.dev/v1alpha1", "kind": "PlacementReview",
    "metadata": {"name": "x", "namespace": "team"},
    "spec": {"objectRef": {"kind": "Machine", "name": "web"}, "copies": 7}})");
  testing::ExpectRules<PlacementReview>(
      valid,
      {
          {"as it is", [](auto&) {}, {}},
          {"nothing",
           [](auto& review) { review.spec.object_ref.reset(); },
           {"Invalid spec.objectRef"}},
          {"both",
           [](auto& review) { review.spec.object = meta::Value::Object(); },
           {"Invalid spec.objectRef"}},
          {"an object",
           [](auto& review) {
             review.spec.object_ref.reset();
             review.spec.object = meta::Value::Object();
           },
           {}},
          {"a word",
           [](auto& review) {
             review.spec.object_ref.reset();
             review.spec.object = meta::Value("web");
           },
           {"Invalid spec.object"}},
          {"what comes with it",
           [](auto& review) { review.spec.related.assign(kRelatedMax, meta::Value::Object()); },
           {}},
          {"too much that comes with it",
           [](auto& review) { review.spec.related.assign(kRelatedMax + 1, meta::Value::Object()); },
           {"TooMany spec.related"}},
          {"a word that comes with it",
           [](auto& review) { review.spec.related = {meta::Value::Object(), meta::Value("web")}; },
           {"Invalid spec.related[1]"}},
          {"no kind",
           [](auto& review) { review.spec.object_ref->kind.clear(); },
           {"Required spec.objectRef.kind"}},
          {"no name",
           [](auto& review) { review.spec.object_ref->name.clear(); },
           {"Required spec.objectRef.name"}},
          {"no copies", [](auto& review) { review.spec.copies = 0; }, {"Invalid spec.copies"}},
          {"too many copies",
           [](auto& review) { review.spec.copies = kCopiesCountedMax + 1; },
           {"Invalid spec.copies"}},
      });
}

}  // namespace
}  // namespace berth::apis::berth_dev
