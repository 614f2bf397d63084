// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/sorting.h"

#include "cli/render/output.h"
#include "meta/quantity.h"

namespace berth::cli {

bool FieldLess(const std::string& a, const std::string& b) {
  // Absent fields, then quantities, then texts: one order over everything, as sorting needs.
  if (a.empty() || b.empty()) return a.empty() && !b.empty();
  const auto left = meta::Quantity::Parse(a);
  const auto right = meta::Quantity::Parse(b);
  if (left.ok() && right.ok()) return left->nanos() < right->nanos();
  if (left.ok() != right.ok()) return left.ok();
  return a < b;
}

Result<std::string> SortKey(const meta::Value& object, std::string_view path) {
  return EvaluateField(object, path);
}

}  // namespace berth::cli
