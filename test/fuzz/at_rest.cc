// SPDX-License-Identifier: Apache-2.0
// What lies on the disk of an object. An input with an odd first byte is the bytes themselves; with
// an even one the JSON of an object, a zero byte, and damage: where (two bytes) and what (one).
#include "meta/at_rest.h"

#include <cstdint>
#include <string>

#include "base/check.h"
#include "meta/json.h"
#include "meta/test_kind.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

using meta::testing::kWidget;
using meta::testing::Widget;

void LookAt(const meta::AtRestView& view) {
  size_t seen = view.uid().size() + view.body().size() + view.metadata_body().size();
  view.ForEachLabel(
      [&](std::string_view key, std::string_view value) { seen += key.size() + value.size(); });
  view.ForEachOwner([&](std::string_view uid) { seen += uid.size(); });
  for (size_t i = 0; i < kWidget.field_selectors.size() + 1; ++i) seen += view.FieldValue(i).size();
  (void)view.Label("app");
  static const auto kLabels = *meta::Selector::Parse("app=web,tier!=db,!gone,zone in (a,b)");
  static const auto kFields = *meta::FieldSelector::Parse("metadata.name=a,status.state!=Running");
  (void)view.Matches(kLabels);
  (void)view.Matches(kFields, kWidget, "default", "a");
  CHECK(seen < size_t{1} << 32U);
}

void Read(std::string_view at_rest) {
  const auto view = meta::AtRestView::Parse(at_rest);
  if (view.ok()) {
    LookAt(*view);
  } else {
    CHECK(view.status().Is(Reason::kInternal)) << view.status();
  }
  const auto object = meta::DecodeAtRest(kWidget, at_rest, "7");
  if (!object.ok()) return;
  CHECK(view.ok()) << "decoded, with a header that cannot be read: " << view.status();
  const Bytes once = meta::EncodeAtRest(*object);
  const auto again = meta::DecodeAtRest(kWidget, once.view(), "7");
  CHECK(again.ok()) << again.status();
  CHECK(meta::EncodeAtRest(*again) == once) << "written twice";
}

}  // namespace

void AtRest(std::string_view bytes) {
  const uint8_t choice = TakeByte(bytes);
  if ((choice & 1) != 0) {
    Read(bytes);
    return;
  }
  auto widget = meta::DecodeJsonAs<Widget>(TakeText(bytes));
  if (!widget.ok()) return;
  const Bytes whole = meta::EncodeAtRest(meta::Object::Of(kWidget, *std::move(widget)));
  Read(whole.view());
  std::string damaged(whole.view());
  while (bytes.size() >= 3 && !damaged.empty()) {
    const size_t high = TakeByte(bytes);
    const size_t at = high * 256 + TakeByte(bytes);
    damaged[at % damaged.size()] = static_cast<char>(TakeByte(bytes));
  }
  Read(damaged);
}

}  // namespace berth::fuzz
