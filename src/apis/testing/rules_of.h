// SPDX-License-Identifier: Apache-2.0
// Tables of broken rules: each row changes a valid object and says which causes must be reported,
// as "Required spec.machineClassRef".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "meta/defaults.h"
#include "meta/json.h"
#include "meta/kind.h"
#include "meta/validate.h"

namespace berth::apis::testing {

inline std::vector<std::string> Describe(const meta::FieldErrors& errors) {
  constexpr std::string_view kPrefix = "FieldValue";
  std::vector<std::string> lines;
  for (const Cause& cause : errors.causes()) {
    std::string_view kind = CauseKindName(cause.kind);
    if (kind.starts_with(kPrefix)) kind.remove_prefix(kPrefix.size());
    lines.push_back(std::string(kind) + " " + cause.field);
  }
  std::ranges::sort(lines);
  return lines;
}

using Causes = std::vector<std::string>;

template <class T>
struct Rule {
  std::string what;
  std::function<void(T&)> change;
  Causes causes;  // empty: allowed
};

// An object as a user writes it; unknown fields fail the test.
template <class T>
T Parse(std::string_view json) {
  meta::TypeMeta type_meta;
  auto object = meta::DecodeJsonAs<T>(
      json, {.field_validation = meta::FieldValidation::kStrict, .type_meta = &type_meta});
  EXPECT_TRUE(object.ok()) << object.status() << " in " << json;
  return object.ok() ? *std::move(object) : T{};
}

template <class T>
T WithDefaults(T object) {
  const meta::KindInfo& kind = BerthKind(meta::Tag<T>{});
  meta::ApplyFallbacks(*kind.type, &object);
  if (kind.set_defaults != nullptr) kind.set_defaults(&object);
  return object;
}

template <class T>
Causes CausesOf(const T& object) {
  const meta::KindInfo& kind = BerthKind(meta::Tag<T>{});
  meta::FieldErrors errors;
  meta::ValidateFields(*kind.type, &object, errors);
  if (kind.validate != nullptr) kind.validate(&object, errors);
  return Describe(errors);
}

// Each change to the valid object, validated as a new object.
template <class T>
void ExpectRules(const T& valid, std::vector<Rule<T>> rules) {
  EXPECT_EQ(CausesOf(WithDefaults(valid)), Causes{}) << "the unchanged object";
  const T once = WithDefaults(valid);
  EXPECT_EQ(meta::EncodeJsonOf(WithDefaults(once)), meta::EncodeJsonOf(once));
  EXPECT_EQ(meta::EncodeJsonOf(Parse<T>(meta::EncodeJsonOf(once))), meta::EncodeJsonOf(once));
  for (Rule<T>& rule : rules) {
    T object = WithDefaults(valid);
    rule.change(object);
    std::ranges::sort(rule.causes);
    EXPECT_EQ(CausesOf(WithDefaults(object)), rule.causes) << rule.what;
  }
}

// Each change to `before`, validated as an update of the main resource.
template <class T>
void ExpectUpdateRules(const T& before, std::vector<Rule<T>> rules) {
  const meta::KindInfo& kind = BerthKind(meta::Tag<T>{});
  ASSERT_NE(kind.validate_update, nullptr);
  rules.push_back({"nothing changes", [](T&) {}, {}});
  for (Rule<T>& rule : rules) {
    const T old = WithDefaults(before);
    T now = old;
    rule.change(now);
    now = WithDefaults(now);
    meta::FieldErrors errors;
    kind.validate_update(&now, &old, errors);
    std::ranges::sort(rule.causes);
    EXPECT_EQ(Describe(errors), rule.causes) << rule.what;
  }
}

// Each change to `before`, validated as an update of the subresource status.
template <class T>
void ExpectStatusRules(const T& before, std::vector<Rule<T>> rules) {
  const meta::KindInfo& kind = BerthKind(meta::Tag<T>{});
  ASSERT_NE(kind.validate_status_update, nullptr);
  rules.push_back({"nothing changes", [](T&) {}, {}});
  for (Rule<T>& rule : rules) {
    const T old = WithDefaults(before);
    T now = old;
    rule.change(now);
    now = WithDefaults(now);
    meta::FieldErrors errors;
    kind.validate_status_update(&now, &old, errors);
    std::ranges::sort(rule.causes);
    EXPECT_EQ(Describe(errors), rule.causes) << rule.what;
  }
}

inline std::string CellOf(const meta::KindInfo& kind, std::string_view column, const void* object) {
  for (const meta::Column& candidate : kind.columns) {
    if (candidate.name == column && candidate.cell != nullptr) return candidate.cell(object);
  }
  return "no such column";
}

}  // namespace berth::apis::testing
