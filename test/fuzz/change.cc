// SPDX-License-Identifier: Apache-2.0
// Patches and apply, on a tree and documents that are all from outside. An input of `patch` is a
// byte that chooses, the tree, a zero byte and the document; of `apply` a byte that chooses, the
// tree, a configuration, fields that somebody owns already, and a second configuration.
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "meta/apply/apply.h"
#include "meta/apply/fields_v1.h"
#include "meta/json.h"
#include "meta/patch/patch.h"
#include "meta/test_kind.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

using meta::testing::Widget;

Result<meta::Value> Patched(uint8_t form, const meta::Value& tree, const meta::Value& patch) {
  switch (form % 3) {
    case 0: return meta::ApplyJsonPatch(tree, patch);
    case 1: return meta::ApplyMergePatch(tree, patch);
    default: return meta::ApplyStrategicMergePatch(tree, patch, meta::TypeInfoOf<Widget>());
  }
}

// As a server has it before anything is done with it: decoded and encoded.
Result<meta::Value> TreeOf(std::string_view text) {
  TRY(const Widget widget, meta::DecodeJsonAs<Widget>(text));
  return meta::ToValueOf(widget);
}

Result<meta::Applied> AppliedBy(std::string manager,
                                meta::Conflicts conflicts,
                                const meta::Value& live,
                                const meta::Value& configuration,
                                meta::Managers managers) {
  const meta::Application application{.type = &meta::TypeInfoOf<Widget>(),
                                      .api_version = "test/v1",
                                      .manager = std::move(manager),
                                      .subresource = "",
                                      .conflicts = conflicts,
                                      .now = WallTime::FromSeconds(100),
                                      .takeover = {}};
  return meta::Apply(application, live, configuration, std::move(managers));
}

// A server decodes a configuration before it applies it.
std::optional<meta::Value> ConfigurationOf(std::string_view text) {
  auto configuration = meta::ParseJson(text);
  if (!configuration.ok() || !configuration->is_object()) return std::nullopt;
  Widget widget;
  if (!meta::FromValue(*configuration, meta::TypeInfoOf<Widget>(), &widget).ok()) {
    return std::nullopt;
  }
  return *std::move(configuration);
}

std::optional<meta::FieldSet> StoredFields(std::string_view text) {
  const auto fields = meta::ParseJson(text);
  if (!fields.ok()) return std::nullopt;
  const auto set = meta::ReadFieldsV1(*fields);
  if (!set.ok()) return std::nullopt;
  const auto again = meta::ReadFieldsV1(meta::WriteFieldsV1(*set));
  CHECK(again.ok() && *again == *set) << meta::WriteJson(*fields);
  return *set;
}

void CheckRefused(const Status& status, meta::Conflicts conflicts) {
  CHECK(!status.Is(Reason::kInternal)) << status;
  CHECK(conflicts == meta::Conflicts::kRefused || !status.Is(Reason::kConflict)) << status;
}

// What was applied can be stored, and the same configuration changes nothing a second time.
void CheckSettled(const std::string& manager,
                  const meta::Applied& applied,
                  const meta::Value& configuration) {
  Widget widget;
  const Status decoded = meta::FromValue(applied.tree, meta::TypeInfoOf<Widget>(), &widget);
  CHECK(decoded.ok()) << decoded << ": " << meta::WriteJson(applied.tree);
  const auto entries = meta::WriteManagers(applied.managers, "test/v1");
  const auto read = meta::ReadManagers(entries);
  CHECK(read.ok() && meta::WriteManagers(*read, "test/v1") == entries) << "managers, read again";
  const auto twice =
      AppliedBy(manager, meta::Conflicts::kRefused, applied.tree, configuration, applied.managers);
  CHECK(twice.ok()) << "the same configuration, a second time: " << twice.status();
  CHECK(meta::WriteJson(twice->tree) == meta::WriteJson(applied.tree)) << "a second time";
}

// A second manager that applies the same agrees with the first; when the first then wants nothing
// any more, everything stays, because it is the second's.
void CheckShared(const meta::Applied& applied, const meta::Value& configuration) {
  const auto shared =
      AppliedBy("b", meta::Conflicts::kRefused, applied.tree, configuration, applied.managers);
  CHECK(shared.ok()) << "the same configuration, of another manager: " << shared.status();
  CHECK(meta::WriteJson(shared->tree) == meta::WriteJson(applied.tree)) << "another manager";
  const auto left = AppliedBy(
      "a", meta::Conflicts::kRefused, shared->tree, meta::Value::Object(), shared->managers);
  CHECK(left.ok()) << "an empty configuration: " << left.status();
  CHECK(meta::WriteJson(left->tree) == meta::WriteJson(shared->tree)) << "what is shared stays";
}

}  // namespace

void Patch(std::string_view bytes) {
  const uint8_t form = TakeByte(bytes);
  const auto tree = meta::ParseJson(TakeText(bytes));
  const auto patch = meta::ParseJson(bytes);
  if (!tree.ok() || !patch.ok() || !tree->is_object()) return;
  const std::string before = meta::WriteJson(*tree);
  const auto after = Patched(form, *tree, *patch);
  CHECK(meta::WriteJson(*tree) == before) << "a patch has changed what it was given";
  if (!after.ok()) {
    CHECK(!after.status().Is(Reason::kInternal)) << after.status();
    return;
  }
  Widget widget;
  (void)meta::FromValue(*after, meta::TypeInfoOf<Widget>(), &widget);
  if (form % 3 == 1) {
    const auto again = meta::ApplyMergePatch(*after, *patch);
    CHECK(again.ok() && meta::WriteJson(*again) == meta::WriteJson(*after)) << "a second time";
  }
}

void Apply(std::string_view bytes) {
  const uint8_t choice = TakeByte(bytes);
  const auto live = TreeOf(TakeText(bytes));
  const auto first = ConfigurationOf(TakeText(bytes));
  const std::optional<meta::FieldSet> stored = StoredFields(TakeText(bytes));
  const auto second = ConfigurationOf(bytes);
  if (!live.ok() || !first) return;
  meta::Managers managers;
  meta::RecordUpdate(meta::TypeInfoOf<Widget>(),
                     meta::Value::Object(),
                     *live,
                     {.name = "creator", .operation = meta::ManagerOperation::kUpdate},
                     WallTime::FromSeconds(1),
                     managers);
  // What somebody wrote into managedFields: of anything, whether it is there or not. The one who
  // applies now may have it.
  if (stored && !stored->empty()) {
    const bool by_apply = (choice & 2) != 0;
    managers[{
        .name = (choice & 4) != 0 ? "a" : "stored",
        .operation = by_apply ? meta::ManagerOperation::kApply : meta::ManagerOperation::kUpdate,
        .subresource = (choice & 8) != 0 ? "status" : ""}] = {.fields = *stored,
                                                              .time = WallTime::FromSeconds(2)};
  }
  const auto conflicts = (choice & 1) != 0 ? meta::Conflicts::kForced : meta::Conflicts::kRefused;
  const auto once = AppliedBy("a", conflicts, *live, *first, managers);
  if (!once.ok()) {
    CheckRefused(once.status(), conflicts);
    return;
  }
  CheckSettled("a", *once, *first);
  CheckShared(*once, *first);
  if (!second) return;
  const auto changed =
      AppliedBy("a", meta::Conflicts::kForced, once->tree, *second, once->managers);
  if (!changed.ok()) {
    CheckRefused(changed.status(), meta::Conflicts::kForced);
    return;
  }
  CheckSettled("a", *changed, *second);
  const auto other = AppliedBy("b", conflicts, changed->tree, *first, changed->managers);
  if (!other.ok()) {
    CheckRefused(other.status(), conflicts);
    return;
  }
  CheckSettled("b", *other, *first);
}

}  // namespace berth::fuzz
