// SPDX-License-Identifier: Apache-2.0
// An object and its managers, as a server would keep them, for the tests of apply.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "meta/apply/apply.h"
#include "meta/apply/fields_v1.h"
#include "meta/json.h"
#include "meta/test_kind.h"

namespace berth::meta::testing {

inline const TypeInfo& widget_type = TypeInfoOf<Widget>();

inline Value Json(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *std::move(value) : Value();
}

inline std::string Text(const FieldSet& set) { return WriteJson(WriteFieldsV1(set)); }

struct World {
  Value tree = Value::Object();
  Managers managers;
  int64_t now = 100;

  Status Apply(std::string_view manager,
               const Value& configuration,
               Conflicts conflicts = Conflicts::kRefused,
               std::string subresource = "") {
    Application application{.type = &widget_type,
                            .api_version = "test/v1",
                            .manager = std::string(manager),
                            .subresource = std::move(subresource),
                            .conflicts = conflicts,
                            .now = WallTime::FromSeconds(++now)};
    TRY(Applied applied, meta::Apply(application, tree, configuration, managers));
    // A server decodes what it stores: null and "" are nothing to it.
    Widget widget;
    TRY_STATUS(FromValue(applied.tree, widget_type, &widget));
    tree = ToValueOf(widget);
    managers = std::move(applied.managers);
    return OkStatus();
  }
  Status Apply(std::string_view manager,
               const char* configuration,
               Conflicts conflicts = Conflicts::kRefused) {
    return Apply(manager, Json(configuration), conflicts);
  }
  void Update(std::string_view manager, std::string_view after, std::string subresource = "") {
    const Value next = Json(after);
    RecordUpdate(widget_type,
                 tree,
                 next,
                 {.name = std::string(manager), .subresource = std::move(subresource)},
                 WallTime::FromSeconds(++now),
                 managers);
    tree = next;
  }
  std::string Owned(std::string_view manager,
                    ManagerOperation operation = ManagerOperation::kApply,
                    std::string subresource = "") const {
    const auto found = managers.find({.name = std::string(manager),
                                      .operation = operation,
                                      .subresource = std::move(subresource)});
    return found == managers.end() ? "" : Text(found->second.fields);
  }
  std::string SpecText() const {
    const Value* spec = tree.Find("spec");
    return spec == nullptr ? "" : WriteJson(*spec);
  }
};

}  // namespace berth::meta::testing
