// SPDX-License-Identifier: Apache-2.0
// Patches and apply, on a tree and a document that are both from outside. An input is a byte that
// chooses, the tree, a zero byte and the document.
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
  const auto configuration = meta::ParseJson(TakeText(bytes));
  if (const auto fields = meta::ParseJson(bytes); fields.ok()) {
    const auto set = meta::ReadFieldsV1(*fields);
    if (set.ok()) {
      const auto again = meta::ReadFieldsV1(meta::WriteFieldsV1(*set));
      CHECK(again.ok() && *again == *set) << meta::WriteJson(*fields);
    }
  }
  if (!live.ok() || !configuration.ok() || !configuration->is_object()) return;
  Widget widget;
  // A server decodes a configuration before it applies it.
  if (!meta::FromValue(*configuration, meta::TypeInfoOf<Widget>(), &widget).ok()) return;
  meta::Managers managers;
  meta::RecordUpdate(meta::TypeInfoOf<Widget>(),
                     meta::Value::Object(),
                     *live,
                     {.name = "creator", .operation = meta::ManagerOperation::kUpdate},
                     WallTime::FromSeconds(1),
                     managers);
  const auto conflicts = (choice & 1) != 0 ? meta::Conflicts::kForced : meta::Conflicts::kRefused;
  const auto once = AppliedBy("a", conflicts, *live, *configuration, managers);
  if (!once.ok()) {
    CHECK(!once.status().Is(Reason::kInternal)) << once.status();
    CHECK(conflicts == meta::Conflicts::kRefused || !once.status().Is(Reason::kConflict));
    return;
  }
  const auto twice =
      AppliedBy("a", meta::Conflicts::kRefused, once->tree, *configuration, once->managers);
  CHECK(twice.ok()) << "the same configuration, a second time: " << twice.status();
  CHECK(meta::WriteJson(twice->tree) == meta::WriteJson(once->tree)) << "a second time";
}

}  // namespace berth::fuzz
