// SPDX-License-Identifier: Apache-2.0
// Defends what is done to objects of any kind: copying, defaulting, generic validation.
#include "meta/object.h"

#include <gtest/gtest.h>

#include "meta/defaults.h"
#include "meta/json.h"
#include "meta/test_kind.h"
#include "meta/validate.h"

namespace berth::meta {
namespace {

using testing::kWidget;
using testing::Widget;

Object Named(std::string_view json = "{}") {
  Object object(kWidget);
  EXPECT_TRUE(DecodeJson(json, *kWidget.type, object.data()).ok());
  object.metadata().name = "a";
  object.metadata().namespace_ = "default";
  return object;
}

std::vector<std::string> ProblemsOf(const Object& object) {
  FieldErrors errors;
  ValidateObject(object, errors);
  std::vector<std::string> lines;
  for (const auto& cause : errors.causes()) lines.push_back(cause.field + ": " + cause.message);
  return lines;
}

TEST(Object, CopiesAreIndependent) {
  Object original = Named(R"({"spec":{"power":"On"}})");
  Object copy = original;
  EXPECT_EQ(copy, original);
  copy.as<Widget>().spec.power = "Off";
  EXPECT_EQ(original.as<Widget>().spec.power, "On");
  EXPECT_FALSE(copy == original);
  Object moved = std::move(copy);
  EXPECT_EQ(moved.as<Widget>().spec.power, "Off");
  moved = original;
  EXPECT_EQ(moved, original);
  EXPECT_TRUE(Object() == Object());
  EXPECT_FALSE(Object() == original);
}

TEST(Object, SpecAndStatusAreExchangedSeparately) {
  const Object stored = Named(R"({"spec":{"power":"On"},"status":{"state":"Ready"}})");
  Object sent = Named(R"({"spec":{"power":"Off"},"status":{"state":"Broken"}})");
  EXPECT_FALSE(sent.SameField("status", stored));
  sent.CopyField("status", stored);
  EXPECT_TRUE(sent.SameField("status", stored));
  EXPECT_EQ(sent.as<Widget>().status.state, "Ready");
  EXPECT_EQ(sent.as<Widget>().spec.power, "Off");
  sent.ClearField("status");
  EXPECT_EQ(sent.as<Widget>().status.state, "");
}

TEST(Defaults, FillAbsentFieldsInsideListsToo) {
  Object object = Named(R"({"spec":{"disks":[{"name":"a"},{"name":"b","device":"odb"}]}})");
  SetDefaults(object);
  const auto& spec = object.as<Widget>().spec;
  EXPECT_EQ(spec.power, "On");
  EXPECT_EQ(spec.replicas, 1);
  EXPECT_EQ(spec.disks[0].device, "oda");
  EXPECT_EQ(spec.disks[1].device, "odb");
  const Object once = object;
  SetDefaults(object);
  EXPECT_EQ(object, once);
}

TEST(Defaults, LeaveAnExplicitZeroAlone) {
  Object object = Named(R"({"spec":{"replicas":0,"power":"Off"}})");
  SetDefaults(object);
  EXPECT_EQ(object.as<Widget>().spec.replicas, 0);
  EXPECT_EQ(object.as<Widget>().spec.power, "Off");
}

TEST(Validate, RequiredFieldsAndAllowedValues) {
  EXPECT_EQ(ProblemsOf(Named()), std::vector<std::string>{});
  EXPECT_EQ(ProblemsOf(Named(R"({"spec":{"power":"Maybe","disks":[{},{"name":"b"}],)"
                             R"("selector":{"matchExpressions":[{"key":"a"}]}},)"
                             R"("status":{"state":"x"}})")),
            (std::vector<std::string>{
                R"(spec.power: Unsupported value: "Maybe": supported values: "On", "Off")",
                "spec.disks[0].name: Required value",
                "spec.selector.matchExpressions[0].operator: Required value",
                R"(status.state: Unsupported value: "x": supported values: "Ready", "Broken")"}));
}

TEST(Validate, NoTextIsLongerThanItsFieldAllows) {
  const std::string most(kMaxStringBytes, 'x');
  const std::string over = most + 'x';
  const std::string why = ": Too long: 65537 bytes: may not be more than 65536 bytes";
  const auto problems = [](auto change) {
    Object object = Named();
    change(object.as<Widget>());
    return ProblemsOf(object);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(problems([&](Widget& w) { w.spec.placement.policy = most; }), Lines{});
  EXPECT_EQ(problems([&](Widget& w) { w.spec.placement.policy = over; }),
            Lines{"spec.policy" + why});
  EXPECT_EQ(problems([&](Widget& w) { w.spec.power = over; }), Lines{"spec.power" + why});
  EXPECT_EQ(problems([&](Widget& w) { w.spec.tags = {"short", over}; }),
            Lines{"spec.tags[1]" + why});
  EXPECT_EQ(problems([&](Widget& w) {
              w.spec.disks = {{.name = "a", .volume_ref = testing::Reference{over}}};
            }),
            Lines{"spec.disks[0].volumeRef.name" + why});
  // A key is not said: it would be most of the message.
  EXPECT_EQ(problems([&](Widget& w) { w.spec.resources[over] = Quantity(1); }),
            Lines{"spec.resources" + why});
  // Bytes are limited by the kinds that have them.
  EXPECT_EQ(problems([&](Widget& w) { w.spec.data["a"].bytes = over; }), Lines{});
  EXPECT_EQ(problems([&](Widget& w) { w.metadata.owner_references = {{"v1", "K", over, "u"}}; }),
            Lines{"metadata.ownerReferences.name" + why});
  EXPECT_EQ(problems([&](Widget& w) { w.metadata.annotations["a"] = over; }), Lines{});
}

TEST(Validate, Metadata) {
  const auto problem = [](auto change) {
    Object object = Named();
    change(object.metadata());
    const auto problems = ProblemsOf(object);
    return problems.empty() ? std::string() : problems.front().substr(0, 70);
  };
  EXPECT_EQ(problem([](ObjectMeta& m) { m.name = ""; }),
            "metadata.name: Required value: name or generateName is required");
  EXPECT_EQ(problem([](ObjectMeta& m) { m.name = "A"; }),
            R"(metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must)");
  EXPECT_EQ(problem([](ObjectMeta& m) { m.namespace_ = ""; }),
            "metadata.namespace: Required value");
  EXPECT_TRUE(problem([](ObjectMeta& m) {
                m.labels["a b"] = "x";
              }).starts_with("metadata.labels: Invalid value: \"a b\": name part must"));
  EXPECT_TRUE(problem([](ObjectMeta& m) {
                m.annotations["big"] = std::string(kMaxAnnotationBytes, 'x');
              }).starts_with("metadata.annotations: Too long: 262147 bytes: may not be more"));
  EXPECT_EQ(problem([](ObjectMeta& m) { m.annotations["Example.COM/x"] = "ok"; }), "");
  EXPECT_EQ(problem([](ObjectMeta& m) { m.owner_references = {{"v1", "K", "n", "", {}, {}}}; }),
            R"(metadata.ownerReferences.uid: Invalid value: "": uid must not be empty)");
  EXPECT_TRUE(
      problem([](ObjectMeta& m) {
        m.owner_references = {{"a/b/c", "K", "n", "u", {}, {}}};
      }).starts_with("metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version"));
  EXPECT_TRUE(
      problem([](ObjectMeta& m) {
        m.owner_references = {{"v1", "K", "n", "u", true, {}}, {"v1", "K", "m", "w", true, {}}};
      }).starts_with("metadata.ownerReferences: Invalid value: \"K/m\": Only one reference"));
  EXPECT_TRUE(problem([](ObjectMeta& m) {
                m.finalizers = {"a b"};
              }).starts_with("metadata.finalizers: Invalid value"));
  EXPECT_TRUE(problem([](ObjectMeta& m) {
                m.finalizers = {"orphan", "foregroundDeletion"};
              }).starts_with("metadata.finalizers: Invalid value"));
  EXPECT_TRUE(problem([](ObjectMeta& m) {
                m.generate_name = "_";
              }).starts_with("metadata.generateName: Invalid value"));
}

TEST(Validate, MetadataThatMayNotChange) {
  const auto problem = [](auto change) {
    ObjectMeta before;
    before.name = "a";
    before.uid = "u";
    before.generation = 2;
    ObjectMeta now = before;
    change(now, before);
    FieldErrors errors;
    ValidateMetadataUpdate(now, before, errors);
    return errors.empty() ? std::string()
                          : errors.causes()[0].field + ": " + errors.causes()[0].message;
  };
  EXPECT_EQ(problem([](auto&, auto&) {}), "");
  EXPECT_EQ(problem([](auto& now, auto&) { now.name = "b"; }),
            R"(metadata.name: Invalid value: "b": field is immutable)");
  EXPECT_EQ(problem([](auto& now, auto&) { now.uid = ""; }),
            R"(metadata.uid: Invalid value: "": field is immutable)");
  EXPECT_EQ(problem([](auto& now, auto&) { now.generation = 1; }),
            "metadata.generation: Invalid value: 1: must not be decremented");
  EXPECT_EQ(
      problem([](auto& now, auto&) { now.deletion_timestamp = WallTime::FromSeconds(1); }),
      R"(metadata.deletionTimestamp: Invalid value: "1970-01-01T00:00:01Z": field is immutable)");
  EXPECT_EQ(problem([](auto& now, auto& before) {
              before.deletion_timestamp = now.deletion_timestamp = WallTime::FromSeconds(1);
              before.finalizers = {"x"};
              now.finalizers = {"x", "y"};
            }),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
            "deleted, found new finalizers []string{\"y\"}");
}

}  // namespace
}  // namespace berth::meta
