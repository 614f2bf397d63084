// SPDX-License-Identifier: Apache-2.0
// Defends which form each real client gets, from the headers that it sends.
#include "apiserver/http/negotiation.h"

#include <gtest/gtest.h>

namespace berth::apiserver {
namespace {

TEST(NegotiateAccept, PicksTheFirstFormThatIsServed) {
  struct Case {
    std::string_view accept;
    Shape shape;
    std::string_view version;
  };
  const Case cases[] = {
      {"", Shape::kObject, "v1"},
      {"application/json", Shape::kObject, "v1"},
      {"*/*", Shape::kObject, "v1"},
      {"application/vnd.kubernetes.protobuf, */*", Shape::kObject, "v1"},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/"
       "json;as=Table;v=v1beta1;g=meta.k8s.io,"
       "application/json",
       Shape::kTable,
       "v1"},
      {"application/json;as=Table;v=v1beta1;g=meta.k8s.io", Shape::kTable, "v1beta1"},
      {"application/json;as=Table;v=v7;g=meta.k8s.io,application/json", Shape::kObject, "v1"},
      {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
       "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
       Shape::kPartialMetadata,
       "v1"},
      {"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json",
       Shape::kObject,
       "v1"},
  };
  for (const auto& c : cases) {
    const auto form = NegotiateAccept(c.accept);
    ASSERT_TRUE(form.ok()) << c.accept;
    EXPECT_EQ(form->shape, c.shape) << c.accept;
    EXPECT_EQ(form->meta_version, c.version) << c.accept;
  }
}

TEST(NegotiateAccept, SaysWhatIsServedWhenNothingFits) {
  const auto form = NegotiateAccept("text/html");
  ASSERT_FALSE(form.ok());
  EXPECT_TRUE(form.status().Is(Reason::kNotAcceptable));
  EXPECT_NE(form.status().message().find("text/html"), std::string_view::npos);
}

TEST(NegotiateBody, RefusesWhatItCannotRead) {
  EXPECT_EQ(*NegotiateBody("application/json; charset=utf-8"), BodyForm::kJson);
  EXPECT_EQ(*NegotiateBody("Application/YAML"), BodyForm::kYaml);
  EXPECT_EQ(*NegotiateBody("application/vnd.kubernetes.protobuf"), BodyForm::kProtobuf);
  for (const auto* type : {"application/cbor", "text/plain", "application/x-protobuf"}) {
    const auto form = NegotiateBody(type);
    ASSERT_FALSE(form.ok()) << type;
    EXPECT_TRUE(form.status().Is(Reason::kUnsupportedMediaType)) << type;
    EXPECT_NE(form.status().message().find(type), std::string_view::npos) << form.status();
  }
}

TEST(NegotiatePatch, KnowsFourKindsOfPatch) {
  EXPECT_EQ(*NegotiatePatch("application/json-patch+json"), PatchForm::kJsonPatch);
  EXPECT_EQ(*NegotiatePatch("application/merge-patch+json"), PatchForm::kMergePatch);
  EXPECT_EQ(*NegotiatePatch("application/strategic-merge-patch+json"),
            PatchForm::kStrategicMergePatch);
  EXPECT_EQ(*NegotiatePatch("application/apply-patch+yaml"), PatchForm::kApply);
  EXPECT_FALSE(NegotiatePatch("application/apply-patch+cbor").ok());
  EXPECT_FALSE(NegotiatePatch("").ok());
}

TEST(Negotiation, UsagesAreAskedForByTheirWholeName) {
  EXPECT_TRUE(AsksForUsages("application/json;as=UsageList;g=berth.dev;v=v1alpha1"));
  EXPECT_TRUE(AsksForUsages("application/json; v=v1alpha1; g=berth.dev; as=UsageList, */*"));
  for (const char* other : {"",
                            "application/json",
                            "application/json;as=UsageList;g=berth.dev;v=v1",
                            "application/json;as=UsageList;g=meta.k8s.io;v=v1alpha1",
                            "application/yaml;as=UsageList;g=berth.dev;v=v1alpha1",
                            "*/*,application/json;as=UsageList;g=berth.dev;v=v1alpha1"}) {
    EXPECT_FALSE(AsksForUsages(other)) << other;
  }
}

}  // namespace
}  // namespace berth::apiserver
