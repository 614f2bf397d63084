// SPDX-License-Identifier: Apache-2.0
#include "store/fenced/fenced_store.h"

#include <algorithm>

namespace berth::store {

rt::Task<Result<TxnResult>> FencedStore::Commit(Txn txn) {
  txn.conditions.push_back(fence_);
  CO_TRY(TxnResult result, co_await inner().Commit(std::move(txn)));
  if (result.committed) co_return result;
  const bool is_fenced = std::ranges::any_of(
      result.conflicts, [this](const KeyValue& state) { return state.key == fence_.key; });
  if (!is_fenced) co_return result;
  on_fenced_();
  co_return Unavailable("this server does not lead any more: nothing was written");
}

}  // namespace berth::store
