// SPDX-License-Identifier: Apache-2.0
// A FencedStore is a store whose commits happen only while one key is as it was: what a leader
// writes through it ends, inside the store, with the commit by which the next leader changes that
// key. A leader that was paused and does not know it yet writes nothing.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "rt/task.h"
#include "store/passing_store.h"
#include "store/store.h"

namespace berth::store {

class FencedStore final : public PassingStore {
 public:
  // `inner` outlives this. `on_fenced` is called for every commit that came too late.
  FencedStore(Store& inner, Condition fence, std::function<void()> on_fenced)
      : PassingStore(inner), fence_(std::move(fence)), on_fenced_(std::move(on_fenced)) {}

  // Unavailable if the fence has changed.
  rt::Task<Result<TxnResult>> Commit(Txn txn) override;

 private:
  const Condition fence_;
  const std::function<void()> on_fenced_;
};

}  // namespace berth::store
