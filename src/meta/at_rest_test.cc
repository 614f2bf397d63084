// SPDX-License-Identifier: Apache-2.0
// Defends the object at rest: selecting without decoding, serving by putting text in front, and
// that damaged bytes are an error and never more.
#include "meta/at_rest.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "meta/at_rest_stencil.h"
#include "meta/json.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

using testing::kWidget;
using testing::Widget;

Object Sample() {
  Widget widget;
  widget.metadata.name = "a";
  widget.metadata.namespace_ = "default";
  widget.metadata.uid = "0b1d";
  widget.metadata.resource_version = "7";
  widget.metadata.creation_timestamp = WallTime::FromSeconds(1'700'000'000);
  widget.metadata.labels = {{"app", "web"}, {"tier", "front"}};
  widget.metadata.owner_references = {{"v1", "K", "n", "owner-1", {}, {}},
                                      {"v1", "K", "m", "owner-2", {}, {}}};
  widget.spec.pool_ref = testing::Reference{"pool-1"};
  widget.spec.power = "On";
  widget.status.state = "Ready";
  return Object::Of(kWidget, std::move(widget));
}

TEST(AtRest, ComesBackAsItWasWithTheGivenRevision) {
  const Object object = Sample();
  const Bytes bytes = EncodeAtRest(object);
  auto decoded = DecodeAtRest(kWidget, bytes.view(), "42");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->metadata().resource_version, "42");
  decoded->metadata().resource_version = "7";
  EXPECT_EQ(*decoded, object);
}

TEST(AtRest, IsServedByPuttingTextInFront) {
  const Bytes bytes = EncodeAtRest(Sample());
  const auto view = *AtRestView::Parse(bytes.view());
  const std::string json =
      ObjectPrefix("test.OpenKCM.dev/v1", "Widget", "42") + std::string(view.body());
  TypeMeta type_meta;
  const auto widget = DecodeJsonAs<Widget>(
      json, {.field_validation = FieldValidation::kStrict, .type_meta = &type_meta});
  ASSERT_TRUE(widget.ok()) << widget.status() << json;
  EXPECT_EQ(type_meta.api_version, "test.OpenKCM.dev/v1");
  EXPECT_EQ(widget->metadata.resource_version, "42");
  EXPECT_EQ(widget->spec.power, "On");
  const auto partial =
      ParseJson(ObjectPrefix("v1", "P", "1") + std::string(view.metadata_body()) + "}");
  ASSERT_TRUE(partial.ok()) << partial.status();
  EXPECT_EQ(partial->GetString({"metadata", "uid"}), "0b1d");
  EXPECT_EQ(partial->members().size(), 3U);
}

TEST(AtRest, AnObjectWithoutAnythingIsStillJson) {
  const Bytes bytes = EncodeAtRest(Object(kWidget));
  const auto view = *AtRestView::Parse(bytes.view());
  EXPECT_TRUE(ParseJson(ObjectPrefix("v1", "P", "1") + std::string(view.body())).ok());
  EXPECT_FALSE(view.has_owners());
  EXPECT_TRUE(DecodeAtRest(kWidget, bytes.view(), "1").ok());
}

TEST(AtRest, ItSaysWhoseItIs) {
  Object object = Sample();
  const auto is_named = [&](std::string_view namespace_, std::string_view name) {
    const Bytes bytes = EncodeAtRest(object);
    return AtRestView::Parse(bytes.view())->IsNamed(namespace_, name);
  };
  EXPECT_TRUE(is_named("default", "a"));
  EXPECT_FALSE(is_named("default", "b"));
  EXPECT_FALSE(is_named("other", "a"));
  EXPECT_FALSE(is_named("", "a"));
  object.metadata().generate_name = "a-";
  EXPECT_TRUE(is_named("default", "a"));
  object.metadata().namespace_ = "";
  EXPECT_TRUE(is_named("", "a"));
  EXPECT_FALSE(is_named("default", "a"));
  // Names of roles may hold what JSON escapes.
  object.metadata().name = "a\"b\\c";
  EXPECT_TRUE(is_named("", "a\"b\\c"));
  EXPECT_FALSE(is_named("", "a"));
}

TEST(AtRest, WhoseItIsDoesNotDependOnTheOrderOfItsMembers) {
  const Bytes bytes = EncodeAtRest(Sample());
  std::string text(bytes.view());
  const std::string names = R"("name":"a","namespace":"default")";
  const size_t at = text.find(names);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, names.size(), R"("namespace":"default","name":"a")");
  EXPECT_TRUE(AtRestView::Parse(text)->IsNamed("default", "a"));
  EXPECT_FALSE(AtRestView::Parse(text)->IsNamed("default", "b"));
  text.replace(at, names.size(), R"("namespace":"default","name":!a!)");
  EXPECT_FALSE(AtRestView::Parse(text)->IsNamed("default", "a"));
}

TEST(AtRest, TheHeaderTellsWithoutDecoding) {
  Object object = Sample();
  object.metadata().finalizers = {"example.com/f"};
  object.metadata().deletion_timestamp = WallTime::FromSeconds(5);
  const Bytes bytes = EncodeAtRest(object);
  const auto view = *AtRestView::Parse(bytes.view());
  EXPECT_EQ(view.uid(), "0b1d");
  EXPECT_TRUE(view.is_deleting());
  EXPECT_TRUE(view.has_finalizers());
  EXPECT_TRUE(view.has_owners());
  EXPECT_EQ(view.creation_timestamp(), WallTime::FromSeconds(1'700'000'000));
  std::string owners;
  view.ForEachOwner([&](std::string_view uid) { owners += std::string(uid) + ";"; });
  EXPECT_EQ(owners, "owner-1;owner-2;");
  std::string labels;
  view.ForEachLabel([&](std::string_view key, std::string_view value) {
    labels += std::string(key) + "=" + std::string(value) + ";";
  });
  EXPECT_EQ(labels, "app=web;tier=front;");
  EXPECT_EQ(view.FieldValue(0), "pool-1");
  EXPECT_EQ(view.FieldValue(1), "Ready");
  EXPECT_EQ(view.FieldValue(2), "");
  EXPECT_EQ(view.FieldValue(2).data(), nullptr) << "not empty: not there";
}

TEST(AtRest, SelectsByLabelsAndFields) {
  const Bytes bytes = EncodeAtRest(Sample());
  const auto view = *AtRestView::Parse(bytes.view());
  const auto labels = [&](std::string_view text) { return view.Matches(*Selector::Parse(text)); };
  EXPECT_TRUE(labels(""));
  EXPECT_TRUE(labels("app=web,tier in (front,back),!none"));
  EXPECT_FALSE(labels("app=db"));
  const auto fields = [&](std::string_view text) {
    return view.Matches(*FieldSelector::Parse(text), kWidget, "default", "a");
  };
  EXPECT_TRUE(fields("metadata.name=a,metadata.namespace=default,spec.poolRef.name=pool-1"));
  EXPECT_FALSE(fields("spec.poolRef.name!=pool-1"));
  EXPECT_FALSE(fields("metadata.name=b"));
  EXPECT_TRUE(fields("status.state=Ready"));
}

// As format 1 was written: the labels a second time, in the header.
std::string InFormatOne(const Object& object) {
  constexpr size_t kLabelsAt = 18;
  constexpr size_t kHeaderSizeAt = 2;
  std::string out(EncodeAtRest(object).view());
  out[0] = 1;
  out.erase(kLabelsAt, 4);
  std::string labels(1, static_cast<char>(object.metadata().labels.size()));
  for (const auto& [key, value] : object.metadata().labels) {
    labels += static_cast<char>(key.size()) + key;
    labels += static_cast<char>(value.size()) + value;
  }
  out.insert(kLabelsAt + 1 + object.metadata().uid.size(), labels);
  out[kHeaderSizeAt] = static_cast<char>(out[kHeaderSizeAt] - 4 + static_cast<char>(labels.size()));
  return out;
}

std::string LabelsOf(std::string_view at_rest) {
  std::string labels;
  const auto view = AtRestView::Parse(at_rest);
  if (!view.ok()) return std::string(view.status().message());
  view->ForEachLabel([&](std::string_view key, std::string_view value) {
    labels += std::string(key) + "=" + std::string(value) + ";";
  });
  return labels;
}

TEST(AtRest, ReadsWhatWasWrittenInFormatOne) {
  const Object object = Sample();
  const std::string old = InFormatOne(object);
  EXPECT_EQ(LabelsOf(old), "app=web;tier=front;");
  const auto view = *AtRestView::Parse(old);
  EXPECT_EQ(view.uid(), "0b1d");
  EXPECT_EQ(view.Label("tier"), "front");
  EXPECT_EQ(view.FieldValue(0), "pool-1");
  EXPECT_EQ(view.body(), AtRestView::Parse(EncodeAtRest(object).view())->body());
}

TEST(AtRest, FindsItsLabelsWhateverElseLooksLikeThem) {
  Object object = Sample();
  object.metadata().name = R"("labels":{"app":"no"})";
  object.metadata().annotations = {{"labels", R"({"labels":{"app":"no"}})"}};
  EXPECT_EQ(LabelsOf(EncodeAtRest(object).view()), "app=web;tier=front;");
  object.metadata().labels = {{"a\"b", "c\\"}, {"last", ""}};
  EXPECT_EQ(AtRestView::Parse(EncodeAtRest(object).view())->Label("last"), "");
  object.metadata().labels.clear();
  EXPECT_EQ(LabelsOf(EncodeAtRest(object).view()), "");
}

TEST(AtRest, DamagedBytesAreAnErrorAndNothingWorse) {
  const auto read_all = [](std::string_view damaged) {
    // A heap copy of exactly this size: reading beyond it is seen by the sanitizer.
    const std::vector<char> copy(damaged.begin(), damaged.end());
    const std::string_view text(copy.data(), copy.size());
    const auto view = AtRestView::Parse(text);
    if (view.ok()) {
      size_t sum = view->uid().size() + view->metadata_body().size();
      view->ForEachLabel(
          [&](std::string_view k, std::string_view v) { sum += k.size() + v.size(); });
      view->ForEachOwner([&](std::string_view uid) { sum += uid.size(); });
      for (size_t i = 0; i < 4; ++i) sum += view->FieldValue(i).size();
      EXPECT_LE(sum, text.size() * 2);
      EXPECT_TRUE(view->Matches(Selector()));
    }
    const auto object = DecodeAtRest(kWidget, text, "1");
    if (!object.ok()) {
      EXPECT_TRUE(object.status().Is(Reason::kInternal));
    }
  };
  const std::array good = {std::string(EncodeAtRest(Sample()).view()), InFormatOne(Sample())};
  for (const std::string& whole : good) {
    for (size_t size = 0; size < whole.size(); ++size) read_all(whole.substr(0, size));
  }
  Random random(23);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = good[random.Below(good.size())];
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      damaged[random.Below(random.Chance(0.7) ? 160 : damaged.size())] =
          static_cast<char>(random.Next());
    }
    read_all(damaged);
  }
}

TEST(AtRestStencil, EncodesTheSameBytesWithOtherTexts) {
  Object marked = Sample();
  marked.metadata().name = "#name#";
  marked.metadata().uid = "#uid#";
  marked.metadata().annotations["says"] = "#name# on #pool#";
  marked.as<Widget>().spec.pool_ref->name = "#pool#";
  const std::array<std::string_view, 3> marks = {"#name#", "#uid#", "#pool#"};
  const AtRestStencil stencil(marked, marks);
  for (const std::string name : {"a", "a-much-longer-name-than-the-mark"}) {
    Object object = Sample();
    object.metadata().name = name;
    object.metadata().uid = "uid-of-" + name;
    object.metadata().annotations["says"] = name + " on pool-2";
    object.as<Widget>().spec.pool_ref->name = "pool-2";
    const std::array<std::string_view, 3> texts = {name, object.metadata().uid, "pool-2"};
    EXPECT_EQ(stencil.Encode(object, texts).view(), EncodeAtRest(object).view());
  }
}

TEST(AtRestStencil, WhatJsonEscapesDoesNotFitIn) {
  EXPECT_TRUE(AtRestStencil::FitsIn("web-1.example"));
  for (const char* text : {"a\"b", "a\\b", "a\nb", "\xc3\xa4", "<", "\x7f"}) {
    EXPECT_FALSE(AtRestStencil::FitsIn(text)) << text;
  }
}

}  // namespace
}  // namespace berth::meta
