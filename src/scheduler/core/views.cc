// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/views.h"

namespace berth::scheduler {
namespace {

using Op = SelectorTerm::Op;

void Invert(Bitmap& bits) {
  for (size_t w = 0; w < bits.words(); ++w) bits.word(w) = ~bits.word(w);
}

}  // namespace

void Views::Hold(const SelectorTerm& term, Bitmap& holds) const {
  holds.Fill(0);
  const auto* values = pools_.LabelValues(term.key);
  const bool is_negative = term.op == Op::kNotIn || term.op == Op::kDoesNotExist;
  // A negative term is the opposite of its positive twin: no label, no match, so it holds.
  SelectorTerm positive = term;
  if (term.op == Op::kNotIn) positive.op = Op::kIn;
  if (term.op == Op::kDoesNotExist) positive.op = Op::kExists;
  if (values != nullptr) {
    if (positive.op == Op::kIn) {
      for (const auto& value : term.values)
        if (const auto found = values->find(value); found != values->end())
          found->second.OrInto(holds);
    } else {
      for (const auto& [value, pools] : *values)
        if (positive.Matches({{term.key, value}})) pools.OrInto(holds);
    }
  }
  if (is_negative) Invert(holds);
}

const Bitmap& Views::Matching(SlotHint& hint, const Selector& selector) {
  Bitmap& view = selectors_.Get(hint, selector, [&] {
    auto made = std::make_unique<Bitmap>();
    made->Resize(pools_.words());
    made->Fill(~uint64_t{0});
    Bitmap holds;
    holds.Resize(pools_.words());
    for (const auto& term : selector.terms) {
      Hold(term, holds);
      for (size_t w = 0; w < holds.words(); ++w) made->word(w) &= holds.word(w);
    }
    return made;
  });
  return view;
}

void Views::Assign(TaintView& view, size_t pool, const std::vector<Toleration>& tolerations) const {
  bool hard = false;
  bool soft = false;
  for (const auto& taint : pools_.spec(pool).taints) {
    if (IsTolerated(taint, tolerations)) continue;
    (taint.effect == TaintEffect::kPreferNoSchedule ? soft : hard) = true;
  }
  view.hards += hard;
  view.hards -= view.hard.Test(pool);
  view.softs += soft;
  view.softs -= view.soft.Test(pool);
  view.hard.Assign(pool, hard);
  view.soft.Assign(pool, soft);
}

const TaintView& Views::Untolerated(SlotHint& hint, const std::vector<Toleration>& tolerations) {
  return taints_.Get(hint, tolerations, [&] {
    auto made = std::make_unique<TaintView>();
    made->hard.Resize(pools_.words());
    made->soft.Resize(pools_.words());
    for (size_t pool = 0; pool < pools_.slots(); ++pool) Assign(*made, pool, tolerations);
    return made;
  });
}

void Views::PoolChanged(size_t pool) {
  selectors_.ForEach([&](const Selector& selector, Bitmap& view) {
    view.Resize(pools_.words());
    view.Assign(pool, selector.Matches(pools_.spec(pool).labels));
  });
  taints_.ForEach([&](const std::vector<Toleration>& tolerations, TaintView& view) {
    view.hard.Resize(pools_.words());
    view.soft.Resize(pools_.words());
    Assign(view, pool, tolerations);
  });
}

}  // namespace berth::scheduler
