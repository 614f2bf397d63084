// SPDX-License-Identifier: Apache-2.0
// Compares our API with the one that IronCore's clients know (testdata/ironcore-schema.json):
// every definition, property, type, required list, merge key and list type, and every path.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "apis/registry.h"
#include "meta/json.h"
#include "meta/openapi/document.h"
#include "meta/scheme.h"

namespace berth::apis {
namespace {

using meta::Value;

constexpr std::string_view kPrefix = "com.github.ironcore-dev.ironcore.api.";

// Everything in which we differ on purpose. A line that no longer applies fails the test, too.
const std::set<std::string> kIntended = {
    // In IronCore's Go type, missing in its generated schema.
    "compute.v1alpha1.MachinePoolCondition.lastUpdateTime: only ours",
    // Placement is ours: what is asked of a place, where an object is, how a pool is run.
    "common.v1alpha1.Taint.timeAdded: only ours",
    "common.v1alpha1.Toleration.tolerationSeconds: only ours",
    "compute.v1alpha1.MachinePoolSpec.hostRef: only ours",
    "compute.v1alpha1.MachinePoolSpec.limits: only ours",
    "compute.v1alpha1.MachinePoolSpec.unschedulable: only ours",
    "compute.v1alpha1.MachinePoolStatus.agent: only ours",
    "compute.v1alpha1.MachinePoolStatus.facts: only ours",
    "compute.v1alpha1.MachineSpec.imagePullSecretRef: only ours",
    "compute.v1alpha1.MachineSpec.placement: only ours",
    "compute.v1alpha1.MachineSpec.restartPolicy: only ours",
    "compute.v1alpha1.MachineStatus.placement: only ours",
    "networking.v1alpha1.NetworkInterfaceStatus.conditions: only ours",
    "storage.v1alpha1.BucketPoolSpec.hostRef: only ours",
    "storage.v1alpha1.BucketPoolSpec.limits: only ours",
    "storage.v1alpha1.BucketPoolSpec.unschedulable: only ours",
    "storage.v1alpha1.BucketPoolStatus.agent: only ours",
    "storage.v1alpha1.BucketPoolStatus.conditions: only ours",
    "storage.v1alpha1.BucketPoolStatus.facts: only ours",
    "storage.v1alpha1.BucketStatus.placement: only ours",
    "storage.v1alpha1.VolumeDataSource.volumeRef: only ours",
    "storage.v1alpha1.VolumePoolSpec.hostRef: only ours",
    "storage.v1alpha1.VolumePoolSpec.limits: only ours",
    "storage.v1alpha1.VolumePoolSpec.reach: only ours",
    "storage.v1alpha1.VolumePoolSpec.unschedulable: only ours",
    "storage.v1alpha1.VolumePoolStatus.agent: only ours",
    "storage.v1alpha1.VolumePoolStatus.facts: only ours",
    "storage.v1alpha1.VolumeSnapshotSpec.volumePoolRef: only ours",
    "storage.v1alpha1.VolumeSnapshotStatus.conditions: only ours",
    "storage.v1alpha1.VolumeSnapshotStatus.placement: only ours",
    "storage.v1alpha1.VolumeSpec.imagePullSecretRef: only ours",
    "storage.v1alpha1.VolumeStatus.placement: only ours",
};

// Extensions and texts that the comparison leaves out, each for a reason.
bool IsCompared(std::string_view key) {
  return key != "description"  // in our own words
         && key != "default"   // we say what absent means, IronCore does not
         && key != "enum"      // see CompareEnums
         && key != "x-kubernetes-group-version-kind";  // not part of the reference
}

Value LoadReference() {
  std::ifstream file(std::string(BERTH_APIS_TESTDATA) + "/ironcore-schema.json");
  std::stringstream text;
  text << file.rdbuf();
  auto value = meta::ParseJson(text.str());
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : Value::Object();
}

const Value& Ours() {
  static const meta::Scheme scheme(AllKinds(), {"ironcore.dev"});
  static const Value document = meta::OpenApiV2(scheme, "v0.0.0");
  return document;
}

std::set<std::string> Strings(const Value* list) {
  std::set<std::string> strings;
  if (list == nullptr) return strings;
  for (const Value& item : list->items()) {
    if (item.is_string() && !item.as_string().empty()) strings.insert(item.as_string());
  }
  return strings;
}

class Comparison {
 public:
  void Definition(const std::string& name, const Value& theirs, const Value& ours) {
    Members(name, theirs, ours, {"properties", "required"});
    if (Strings(theirs.Find("required")) != Strings(ours.Find("required"))) {
      Differ(name + ": required");
    }
    const Value none = Value::Object();
    const Value* their_fields = theirs.Find("properties");
    const Value* our_fields = ours.Find("properties");
    if (their_fields == nullptr) their_fields = &none;
    if (our_fields == nullptr) our_fields = &none;
    for (const auto& field : their_fields->members()) {
      const std::string path = name + "." + field.key;
      const Value* own = our_fields->Find(field.key);
      own == nullptr ? Differ(path + ": only theirs") : Schema(path, field.value, *own);
    }
    for (const auto& field : our_fields->members()) {
      if (their_fields->Find(field.key) == nullptr) Differ(name + "." + field.key + ": only ours");
    }
  }

  void Differ(std::string what) { differences_.insert(std::move(what)); }
  const std::set<std::string>& differences() const { return differences_; }

 private:
  void Schema(const std::string& path, const Value& theirs, const Value& ours) {
    CompareEnums(path, theirs, ours);
    Members(path, theirs, ours, {"items", "additionalProperties"});
    for (const std::string_view nested : {"items", "additionalProperties"}) {
      const Value* their_part = theirs.Find(nested);
      const Value* our_part = ours.Find(nested);
      if (their_part == nullptr && our_part == nullptr) continue;
      if (their_part == nullptr || our_part == nullptr) {
        Differ(path + ": " + std::string(nested));
      } else {
        Schema(path + "[]", *their_part, *our_part);
      }
    }
  }

  // Where IronCore lists values we list the same ones; where it only checks them in code we list
  // them, too. Whether "" is listed differs among its own fields.
  void CompareEnums(const std::string& path, const Value& theirs, const Value& ours) {
    const std::set<std::string> their_values = Strings(theirs.Find("enum"));
    if (!their_values.empty() && their_values != Strings(ours.Find("enum"))) {
      Differ(path + ": enum");
    }
  }

  // Everything else must be the same, key by key.
  void Members(const std::string& path,
               const Value& theirs,
               const Value& ours,
               const std::set<std::string_view>& skipped) {
    std::set<std::string> keys;
    for (const auto& member : theirs.members()) keys.insert(member.key);
    for (const auto& member : ours.members()) keys.insert(member.key);
    for (const std::string& key : keys) {
      if (skipped.contains(key) || !IsCompared(key)) continue;
      const Value* their_value = theirs.Find(key);
      const Value* our_value = ours.Find(key);
      if (their_value == nullptr || our_value == nullptr || !(*their_value == *our_value)) {
        Differ(path + ": " + key);
      }
    }
  }

  std::set<std::string> differences_;
};

TEST(Schema, DiffersFromTheReferenceOnlyWhereIntended) {
  const Value reference = LoadReference();
  const Value* theirs = reference.Find("definitions");
  const Value* ours = Ours().Find("definitions");
  ASSERT_NE(theirs, nullptr);
  ASSERT_NE(ours, nullptr);
  ASSERT_GT(theirs->members().size(), 100U);

  Comparison comparison;
  for (const auto& definition : theirs->members()) {
    std::string name = definition.key;
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    const Value* own = ours->Find(definition.key);
    if (own == nullptr) {
      comparison.Differ(name + ": only theirs");
    } else {
      comparison.Definition(name, definition.value, *own);
    }
  }
  for (const auto& definition : ours->members()) {
    if (definition.key.starts_with(kPrefix) && theirs->Find(definition.key) == nullptr) {
      comparison.Differ(definition.key + ": only ours");
    }
  }
  EXPECT_EQ(comparison.differences(), kIntended);
}

TEST(Schema, ServesEveryPathOfTheReference) {
  const Value reference = LoadReference();
  const Value* ours = Ours().Find("paths");
  ASSERT_NE(ours, nullptr);
  std::set<std::string> missing;
  for (const auto& path : reference.Find("paths")->members()) {
    // Watches are a parameter of list; exec comes with the machines' console; discovery describes
    // itself.
    if (path.key.find("/watch/") != std::string::npos || path.key.ends_with("/exec") ||
        path.key.ends_with("/")) {
      continue;
    }
    const Value* own = ours->Find(path.key);
    for (const std::string& verb : Strings(&path.value)) {
      if (own == nullptr || own->Find(verb) == nullptr) missing.insert(verb + " " + path.key);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

}  // namespace
}  // namespace berth::apis
