// SPDX-License-Identifier: Apache-2.0
// Views: the pools that match a selector, the pools whose taints are not tolerated. Kept up to date
// pool by pool, so that a decision only reads bits.
#pragma once

#include <vector>

#include "scheduler/core/internal/pool_table.h"
#include "scheduler/core/internal/slot_cache.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

struct TaintView {
  Bitmap hard;       // NoSchedule or NoExecute that is not tolerated
  Bitmap soft;       // PreferNoSchedule that is not tolerated
  size_t hards = 0;  // bits in hard
  size_t softs = 0;  // bits in soft
};

class Views {
 public:
  explicit Views(const PoolTable& pools) : pools_(pools) {}

  // Pools of any kind whose labels match.
  const Bitmap& Matching(SlotHint& hint, const Selector& selector);
  const TaintView& Untolerated(SlotHint& hint, const std::vector<Toleration>& tolerations);

  // A pool came, went, or changed its labels or taints.
  void PoolChanged(size_t pool);

 private:
  static constexpr size_t kSelectorsMax = 1'024;  // * 12.5 KB with 100,000 pools = 13 MB
  static constexpr size_t kTolerationsMax = 256;  // * 25 KB = 6 MB

  void Assign(TaintView& view, size_t pool, const std::vector<Toleration>& tolerations) const;
  // The pools for which one term holds.
  void Hold(const SelectorTerm& term, Bitmap& holds) const;

  const PoolTable& pools_;
  SlotCache<Selector, Bitmap> selectors_{kSelectorsMax};
  SlotCache<std::vector<Toleration>, TaintView> taints_{kTolerationsMax};
};

}  // namespace berth::scheduler
