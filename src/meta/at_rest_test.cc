// SPDX-License-Identifier: Apache-2.0
// Defends the stored form: nothing is lost, headers select without decoding, damage is an error.
#include "meta/at_rest.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "meta/json.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

using testing::kWidget;
using testing::Widget;

Object MakeWidget() {
  Object object(kWidget);
  auto& widget = object.as<Widget>();
  widget.metadata.name = "w";
  widget.metadata.namespace_ = "default";
  widget.metadata.uid = "6d9f1f4e-0000-4000-8000-000000000001";
  widget.metadata.resource_version = "7";
  widget.metadata.labels = {{"app", "web"}, {"tier", "front"}};
  widget.metadata.finalizers = {"berth.dev/x"};
  widget.spec.power = "On";
  widget.spec.pool_ref = testing::Reference{.name = "pool-1"};
  return object;
}

TEST(AtRest, TheServedTextIsThePrefixAndTheBody) {
  const Bytes bytes = EncodeAtRest(MakeWidget());
  const auto view = AtRestView::Parse(bytes.view());
  ASSERT_TRUE(view.ok()) << view.status();
  const std::string text = ObjectPrefix("test/v1", "Widget", "42") + std::string(view->body());
  const auto value = ParseJson(text);
  ASSERT_TRUE(value.ok()) << value.status() << text;
  EXPECT_EQ(value->GetString({"metadata", "resourceVersion"}), "42");
  EXPECT_EQ(value->GetString({"metadata", "name"}), "w");
  EXPECT_EQ(value->GetString({"spec", "poolRef", "name"}), "pool-1");
  EXPECT_EQ(text.find("\"7\""), std::string::npos) << "the old revision is not stored";
}

TEST(AtRest, PartialMetadataIsAPrefixOfTheBody) {
  const Bytes bytes = EncodeAtRest(MakeWidget());
  const auto view = AtRestView::Parse(bytes.view());
  ASSERT_TRUE(view.ok());
  const std::string text = ObjectPrefix("meta.k8s.io/v1", "PartialObjectMetadata", "42") +
                           std::string(view->metadata_body()) + '}';
  const auto value = ParseJson(text);
  ASSERT_TRUE(value.ok()) << value.status() << text;
  EXPECT_EQ(value->Find("spec"), nullptr);
  EXPECT_EQ(value->GetString({"metadata", "labels", "app"}), "web");
}

TEST(AtRest, DecodingGivesTheSameObject) {
  const Object before = MakeWidget();
  const auto after = DecodeAtRest(kWidget, EncodeAtRest(before).view(), "7");
  ASSERT_TRUE(after.ok()) << after.status();
  std::string a;
  std::string b;
  EncodeJson(*kWidget.type, before.data(), a);
  EncodeJson(*kWidget.type, after->data(), b);
  EXPECT_EQ(a, b);
}

TEST(AtRest, AnObjectWithNothingButMetadataIsValidJson) {
  Object object(kWidget);
  object.metadata().name = "w";
  const Bytes bytes = EncodeAtRest(object);
  const auto view = AtRestView::Parse(bytes.view());
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(ParseJson(ObjectPrefix("test/v1", "Widget", "1") + std::string(view->body())).ok());
}

TEST(AtRest, HeadersSelectWithoutDecoding) {
  const Bytes bytes = EncodeAtRest(MakeWidget());
  const auto view = AtRestView::Parse(bytes.view());
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->has_finalizers());
  EXPECT_FALSE(view->is_deleting());
  EXPECT_FALSE(view->has_owners());
  EXPECT_EQ(view->uid(), "6d9f1f4e-0000-4000-8000-000000000001");
  EXPECT_TRUE(view->Matches(*Selector::Parse("app=web,tier in (front,back),!old")));
  EXPECT_FALSE(view->Matches(*Selector::Parse("app=web,tier=back")));
  EXPECT_TRUE(view->Matches(Selector()));
  const auto matches = [&](std::string_view text) {
    return view->Matches(*FieldSelector::Parse(text), kWidget, "default", "w");
  };
  EXPECT_TRUE(matches("spec.poolRef.name=pool-1"));
  EXPECT_FALSE(matches("spec.poolRef.name=pool-2"));
  EXPECT_TRUE(matches("spec.poolRef.name!=pool-2,metadata.name=w,metadata.namespace=default"));
  EXPECT_FALSE(matches("metadata.namespace=other"));
}

// Bytes come from a disk: whatever they are, reading them is defined.
TEST(AtRest, DamagedBytesAreAnErrorOrAnObjectButNeverACrash) {
  const Bytes bytes = EncodeAtRest(MakeWidget());
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string damaged(bytes.view());
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
    }
    if (random.Chance(0.3)) damaged.resize(random.Below(damaged.size() + 1));
    const auto view = AtRestView::Parse(damaged);
    if (view.ok()) {
      (void)view->Matches(*Selector::Parse("app=web"));
      (void)view->FieldValue(random.Below(5));
      (void)view->metadata_body();
    }
    const auto object = DecodeAtRest(kWidget, damaged, "1");
    if (object.ok()) continue;
    ++refused;
    EXPECT_TRUE(object.status().Is(Reason::kInternal)) << object.status();
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace berth::meta
