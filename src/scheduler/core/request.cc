// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/request.h"

#include <algorithm>

#include "base/strings.h"
#include "scheduler/core/internal/shape.h"

namespace berth::scheduler {
namespace {

using Op = SelectorTerm::Op;

bool CompareNumbers(const SelectorTerm& term, const std::string& value) {
  if (term.values.size() != 1) return false;
  const auto limit = ParseInt(term.values[0]);
  const auto number = ParseInt(value);
  if (!limit || !number) return false;
  return term.op == Op::kGreater ? *number > *limit : *number < *limit;
}

}  // namespace

bool SelectorTerm::Matches(const Labels& labels) const {
  const auto found = labels.find(key);
  const bool exists = found != labels.end();
  switch (op) {
    case Op::kExists: return exists;
    case Op::kDoesNotExist: return !exists;
    case Op::kIn: return exists && std::ranges::find(values, found->second) != values.end();
    case Op::kNotIn: return !exists || std::ranges::find(values, found->second) == values.end();
    case Op::kGreater:
    case Op::kLess: return exists && CompareNumbers(*this, found->second);
  }
  return false;
}

Selector Selector::Equals(const Labels& labels) {
  Selector selector;
  for (const auto& [key, value] : labels)
    selector.terms.push_back({.key = key, .op = Op::kIn, .values = {value}});
  return selector;
}

bool Selector::Matches(const Labels& labels) const {
  return std::ranges::all_of(terms, [&](const auto& term) { return term.Matches(labels); });
}

bool Toleration::Tolerates(const Taint& taint) const {
  if (effect && *effect != taint.effect) return false;
  switch (op) {
    case Toleration::Op::kAny: return true;
    case Toleration::Op::kExists: return key.empty() ? !taint.is_restricted : key == taint.key;
    case Toleration::Op::kEqual: return !key.empty() && key == taint.key && value == taint.value;
  }
  return false;
}

bool IsTolerated(const Taint& taint, const std::vector<Toleration>& tolerations) {
  return std::ranges::any_of(tolerations, [&](const auto& one) { return one.Tolerates(taint); });
}

const Requirements& RequirementsOf(const Shape& shape) { return shape->requirements; }

}  // namespace berth::scheduler
