// SPDX-License-Identifier: Apache-2.0
// Defends what is true of every kind, whatever it is about.
#include "apis/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apis/compute/machine.h"
#include "apis/k8s/event.h"
#include "meta/defaults.h"
#include "meta/ip.h"
#include "meta/json.h"
#include "meta/object.h"
#include "meta/quantity.h"
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

TEST(Registry, HasTheTwentyKindsBelowADomainAndReservations) {
  const auto is_domain = [](const meta::KindInfo* kind) {
    return kind->naming == meta::GroupNaming::kDomain;
  };
  EXPECT_EQ(std::ranges::count_if(AllKinds(), is_domain), 21);
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

TEST(Registry, AStatusIsWrittenEvenIfItIsEmpty) {
  for (const meta::KindInfo* kind : AllKinds()) {
    const meta::Object object(*kind);
    const meta::Value tree = meta::ToValue(*kind->type, object.data());
    const bool expects = kind->has_status || kind->storage == meta::Storage::kReview;
    if (expects) EXPECT_NE(tree.Find("status"), nullptr) << kind->kind;
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

// Gives every field of a value something to say.
void Fill(const meta::TypeInfo& type, void* value, int depth) {
  constexpr int kDepthMax = 64;
  ASSERT_LT(depth, kDepthMax);
  switch (type.kind) {
    case meta::TypeKind::kBool: *static_cast<bool*>(value) = true; break;
    case meta::TypeKind::kInt32: *static_cast<int32_t*>(value) = 7; break;
    case meta::TypeKind::kInt64: *static_cast<int64_t*>(value) = 8; break;
    case meta::TypeKind::kDouble: *static_cast<double*>(value) = 1.5; break;
    case meta::TypeKind::kString: *static_cast<std::string*>(value) = "text"; break;
    case meta::TypeKind::kBase64: static_cast<meta::Base64*>(value)->bytes = "\x01\xff"; break;
    case meta::TypeKind::kTime:
      *static_cast<WallTime*>(value) = WallTime::FromSeconds(1'800'000'000);
      break;
    case meta::TypeKind::kMicroTime:
      static_cast<meta::MicroTime*>(value)->time = WallTime::FromMicros(1'800'000'000'123'456);
      break;
    case meta::TypeKind::kQuantity:
      *static_cast<meta::Quantity*>(value) = *meta::Quantity::Parse("16Gi");
      break;
    case meta::TypeKind::kIp:
      *static_cast<meta::IpAddress*>(value) = *meta::IpAddress::Parse("2001:db8::1");
      break;
    case meta::TypeKind::kIpPrefix:
      *static_cast<meta::IpPrefix*>(value) = *meta::IpPrefix::Parse("10.0.0.0/24");
      break;
    case meta::TypeKind::kIntOrString: static_cast<meta::IntOrString*>(value)->number = 3; break;
    case meta::TypeKind::kValue: *static_cast<meta::Value*>(value) = meta::Value::Object(); break;
    case meta::TypeKind::kRawJson: static_cast<meta::RawJson*>(value)->text = "{}"; break;
    case meta::TypeKind::kOptional:
      Fill(*type.element, type.optional->emplace(value), depth + 1);
      break;
    case meta::TypeKind::kList: Fill(*type.element, type.list->append(value), depth + 1); break;
    case meta::TypeKind::kMap:
      Fill(*type.element, type.map->insert(value, "key"), depth + 1);
      break;
    case meta::TypeKind::kStruct:
      for (const meta::Field& field : type.fields) {
        Fill(*field.type, meta::FieldAt(value, field), depth + 1);
      }
      break;
  }
}

TEST(Registry, EveryFieldOfEveryKindSurvivesJson) {
  for (const meta::KindInfo* kind : AllKinds()) {
    meta::Object object(*kind);
    Fill(*kind->type, object.data(), 0);
    std::string json;
    meta::EncodeJson(*kind->type, object.data(), json);
    meta::Object back(*kind);
    const Status status = meta::DecodeJson(
        json, *kind->type, back.data(), {.field_validation = meta::FieldValidation::kStrict});
    ASSERT_TRUE(status.ok()) << kind->kind << ": " << status;
    std::string again;
    meta::EncodeJson(*kind->type, back.data(), again);
    EXPECT_EQ(again, json) << kind->kind;
    for (const meta::Field& field : kind->type->fields) {
      EXPECT_NE(json.find("\"" + std::string(field.name) + "\":"), std::string::npos)
          << kind->kind << "." << field.name;
    }
  }
}

TEST(Registry, ViewsLoseNothing) {
  for (const meta::KindInfo* kind : AllKinds()) {
    if (kind->view == nullptr) continue;
    meta::Object view(*kind);
    Fill(*kind->type, view.data(), 0);
    meta::Object stored(*kind->view->stored);
    kind->view->to_stored(view.data(), stored.data());
    meta::Object back(*kind);
    kind->view->from_stored(stored.data(), back.data());
    EXPECT_EQ(meta::ToValue(*kind->type, back.data()), meta::ToValue(*kind->type, view.data()));

    meta::Object other(*kind->view->stored);
    Fill(*other.kind().type, other.data(), 0);
    kind->view->from_stored(other.data(), back.data());
    kind->view->to_stored(back.data(), stored.data());
    EXPECT_EQ(meta::ToValue(*stored.kind().type, stored.data()),
              meta::ToValue(*other.kind().type, other.data()));
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
