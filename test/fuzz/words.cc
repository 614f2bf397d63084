// SPDX-License-Identifier: Apache-2.0
// Quantities and selectors: their written form is read as the same, and is final.
#include <string>

#include "base/check.h"
#include "meta/field_selector.h"
#include "meta/label_selector.h"
#include "meta/quantity.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

meta::Quantity MustParse(const std::string& text) {
  const auto parsed = meta::Quantity::Parse(text);
  CHECK(parsed.ok()) << parsed.status();
  return *parsed;
}

}  // namespace

void Quantity(std::string_view bytes) {
  const auto first = meta::Quantity::Parse(TakeText(bytes));
  const auto second = meta::Quantity::Parse(TakeText(bytes));
  if (!first.ok()) return;
  const std::string text = first->ToString();
  CHECK(MustParse(text) == *first) << text;
  CHECK(MustParse(text).ToString() == text) << text;
  (void)first->Value();
  (void)first->MilliValue();
  (void)first->ToDouble();
  if (!second.ok()) return;
  CHECK((*first <=> *second < 0) == (*second <=> *first > 0));
  const meta::Quantity sum = *first + *second;
  CHECK(sum == *second + *first) << sum.ToString();
  (void)(sum - *second).ToString();
  (void)(sum * -3).ToString();
  (void)(-sum).ToString();
}

void Selector(std::string_view bytes) {
  if (const auto labels = meta::Selector::Parse(bytes); labels.ok()) {
    const std::string text = labels->ToString();
    const auto again = meta::Selector::Parse(text);
    CHECK(again.ok()) << again.status() << ": " << text;
    CHECK(*again == *labels) << text;
    (void)labels->Matches({{"app", "web"}, {"tier", ""}, {"n", "5"}});
  }
  if (const auto fields = meta::FieldSelector::Parse(bytes); fields.ok()) {
    const std::string text = fields->ToString();
    const auto again = meta::FieldSelector::Parse(text);
    CHECK(again.ok()) << again.status() << ": " << text;
    CHECK(*again == *fields) << text;
  }
}

}  // namespace berth::fuzz
