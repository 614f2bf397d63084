// SPDX-License-Identifier: Apache-2.0
// Defends what is true of every kind, whatever it is about.
#include "apis/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apis/compute/machine.h"
#include "apis/k8s/event.h"
#include "meta/defaults.h"
#include "meta/json.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apis {
namespace {

void CollectTypes(const meta::TypeInfo& type, std::set<const meta::TypeInfo*>& seen) {
  if (type.element != nullptr) return CollectTypes(*type.element, seen);
  if (type.kind != meta::TypeKind::kStruct || !seen.insert(&type).second) return;
  for (const meta::Field& field : type.fields) CollectTypes(*field.type, seen);
}

std::set<const meta::TypeInfo*> AllTypes() {
  std::set<const meta::TypeInfo*> types;
  for (const meta::KindInfo* kind : AllKinds()) CollectTypes(*kind->type, types);
  return types;
}

TEST(Registry, HasTheTwentyKindsBelowADomain) {
  const auto is_domain = [](const meta::KindInfo* kind) {
    return kind->naming == meta::GroupNaming::kDomain;
  };
  EXPECT_EQ(std::ranges::count_if(AllKinds(), is_domain), 20);
  EXPECT_EQ(&KindOf<compute::Machine>(), &compute::kMachineKind);
}

TEST(Registry, ExplainsEveryFieldInOneSentenceOrMore) {
  for (const meta::TypeInfo* type : AllTypes()) {
    EXPECT_TRUE(type->doc.ends_with(".")) << type->name;
    for (const meta::Field& field : type->fields) {
      EXPECT_TRUE(field.doc.ends_with(".") && field.doc.size() > 3)
          << type->name << " " << field.name;
    }
  }
}

TEST(Registry, NamesEveryDefinitionOnce) {
  std::set<std::string_view> names;
  for (const meta::TypeInfo* type : AllTypes()) {
    EXPECT_TRUE(names.insert(type->name).second) << type->name;
  }
}

TEST(Registry, NamesEveryKindAndShortNameOncePerGroup) {
  std::set<std::string> words;
  for (const meta::KindInfo* kind : AllKinds()) {
    std::vector<std::string_view> own = {kind->plural, kind->singular};
    own.insert(own.end(), kind->short_names.begin(), kind->short_names.end());
    for (const std::string_view word : own) {
      const std::string full = std::string(word) + "." + std::string(kind->group);
      EXPECT_TRUE(words.insert(full).second) << full;
    }
  }
}

TEST(Registry, StatusIsDeclaredWhereverItIsSeparated) {
  for (const meta::KindInfo* kind : AllKinds()) {
    const auto is_status = [](const meta::Field& field) { return field.name == "status"; };
    const bool has_field = std::ranges::any_of(kind->type->fields, is_status);
    if (kind->storage == meta::Storage::kReview) {
      EXPECT_FALSE(kind->has_status) << kind->kind;
    } else {
      EXPECT_EQ(kind->has_status, has_field) << kind->kind;
    }
    EXPECT_EQ(kind->validate_status_update != nullptr && !has_field, false) << kind->kind;
    ASSERT_FALSE(kind->type->fields.empty());
    EXPECT_EQ(kind->type->fields[0].name, "metadata") << kind->kind;
    EXPECT_EQ(kind->type->fields[0].offset, 0U) << kind->kind;
  }
}

TEST(Registry, EveryKindHasColumnsThatAnEmptyObjectSurvives) {
  for (const meta::KindInfo* kind : AllKinds()) {
    const meta::Object object(*kind);
    for (const meta::Column& column : kind->columns) {
      EXPECT_FALSE(column.doc.empty()) << kind->kind << " " << column.name;
      if (column.cell != nullptr) column.cell(object.data());
      if (column.since != nullptr) column.since(object.data());
    }
    if (kind->storage == meta::Storage::kStored) {
      EXPECT_FALSE(kind->columns.empty()) << kind->kind;
    }
  }
}

TEST(Registry, FieldSelectorsNameFieldsOfTheKind) {
  const auto find = [](const meta::TypeInfo* type, std::string_view name) -> const meta::TypeInfo* {
    if (type->kind == meta::TypeKind::kOptional) type = type->element;
    for (const meta::Field& field : type->fields) {
      if (field.name == name) return field.type;
    }
    return nullptr;
  };
  for (const meta::KindInfo* kind : AllKinds()) {
    for (const std::string_view selector : kind->field_selectors) {
      const meta::TypeInfo* type = kind->type;
      std::string_view rest = selector;
      while (type != nullptr && !rest.empty()) {
        const size_t dot = rest.find('.');
        type = find(type, rest.substr(0, dot));
        rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
      }
      EXPECT_NE(type, nullptr) << kind->kind << " " << selector;
    }
  }
}

TEST(Registry, DefaultsOfAnEmptyObjectAreDefaultsOnce) {
  for (const meta::KindInfo* kind : AllKinds()) {
    meta::Object once(*kind);
    once.metadata().name = "a";
    meta::SetDefaults(once);
    meta::Object twice = once;
    meta::SetDefaults(twice);
    EXPECT_EQ(meta::ToValue(*kind->type, once.data()), meta::ToValue(*kind->type, twice.data()))
        << kind->kind;
  }
}

TEST(Registry, BuildsASchemeWithBothDomains) {
  const meta::Scheme scheme(AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  EXPECT_EQ(scheme.FindKind("compute.openkcm.dev", "v1alpha1", "Machine"), &compute::kMachineKind);
  EXPECT_EQ(scheme.FindKind("events.k8s.io", "v1", "Event"), &k8s::kEventKind);
  EXPECT_EQ(scheme.FindKind("", "v1", "Event"), &k8s::kCoreEventKind);
}

}  // namespace
}  // namespace berth::apis
