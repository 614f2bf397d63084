// SPDX-License-Identifier: Apache-2.0
#include "store/sealed/sealed_store.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "rt/sleep.h"
#include "store/key_range.h"

namespace berth::store {
namespace {

// 16 values of 1 MiB are 16 MiB at most.
constexpr size_t kResealPage = 16;
// The first one seals what there was, the second what was under way with the key of before. More
// find only what other servers write.
constexpr int kResealPasses = 3;

}  // namespace

bool SealedKeys::Has(std::string_view key) const {
  return std::ranges::any_of(prefixes, [&](const auto& prefix) { return key.starts_with(prefix); });
}

bool SealedKeys::Meets(std::string_view start, std::string_view end) const {
  if (end.empty()) return Has(start);
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    return start < PrefixEnd(prefix) && (end == kNoEnd || end > prefix);
  });
}

struct SealedStore::Opener {
  std::shared_ptr<KeyFile> keys;
  SealedKeys sealed;

  // A value that was damaged, or written as another object, stays as it is: whoever reads objects
  // cannot read it, and passes it over. A key that is missing may come, and is an error: without it
  // everything would be passed over.
  Status Open(KeyValue& item) const {
    if (item.value.empty() || !sealed.Has(item.key)) return OkStatus();
    Result<Bytes> opened = keys->Open(item.key, item.value);
    if (opened.ok()) {
      item.value = *std::move(opened);
      return OkStatus();
    }
    if (!opened.status().Is(Reason::kInternal)) return opened.status();
    LOG_ERROR("{}", opened.status().message());
    return OkStatus();
  }
  Status Open(std::vector<KeyValue>& items) const {
    for (KeyValue& item : items) TRY_STATUS(Open(item));
    return OkStatus();
  }
};

class SealedStore::SealedWatch final : public Watch {
 public:
  SealedWatch(std::shared_ptr<Opener> opener, std::unique_ptr<Watch> inner)
      : opener_(std::move(opener)), inner_(std::move(inner)) {}

  rt::Task<Result<WatchBatch>> Next() override {
    if (!why_ended_.ok()) co_return why_ended_;
    CO_TRY(WatchBatch batch, co_await inner_->Next());
    for (Event& event : batch.events) {
      Status opened = opener_->Open(event.kv);
      if (opened.ok() && event.previous.has_value()) opened = opener_->Open(*event.previous);
      if (opened.ok()) continue;
      why_ended_ = opened;
      co_return opened;
    }
    co_return batch;
  }

 private:
  std::shared_ptr<Opener> opener_;
  std::unique_ptr<Watch> inner_;
  Status why_ended_;
};

SealedStore::SealedStore(Store& inner, std::shared_ptr<KeyFile> keys, SealedKeys sealed)
    : PassingStore(inner),
      opener_(
          std::make_shared<Opener>(Opener{.keys = std::move(keys), .sealed = std::move(sealed)})) {}

rt::Task<Result<TxnResult>> SealedStore::OpenConflicts(std::shared_ptr<Opener> opener,
                                                       rt::Task<Result<TxnResult>> call) {
  CO_TRY(TxnResult result, co_await call);
  CO_TRY_STATUS(opener->Open(result.conflicts));
  co_return result;
}

rt::Task<Result<RangeResult>> SealedStore::OpenItems(std::shared_ptr<Opener> opener,
                                                     rt::Task<Result<RangeResult>> call) {
  CO_TRY(RangeResult result, co_await call);
  CO_TRY_STATUS(opener->Open(result.items));
  co_return result;
}

rt::Task<Result<std::unique_ptr<Watch>>> SealedStore::OpenWatch(
    std::shared_ptr<Opener> opener, rt::Task<Result<std::unique_ptr<Watch>>> call) {
  CO_TRY(std::unique_ptr<Watch> watch, co_await call);
  co_return std::unique_ptr<Watch>(
      std::make_unique<SealedWatch>(std::move(opener), std::move(watch)));
}

rt::Task<Result<TxnResult>> SealedStore::Commit(Txn txn) {
  bool conflicts = false;
  for (const Condition& condition : txn.conditions) conflicts |= opener_->sealed.Has(condition.key);
  for (Op& op : txn.ops) {
    if (op.type != Op::Type::kPut || !opener_->sealed.Has(op.key)) continue;
    // The limits are those of what the caller gave.
    if (op.key.size() > kMaxKeyBytes || op.value.size() > kMaxValueBytes) continue;
    op.value = opener_->keys->Seal(op.key, op.value.view());
  }
  if (!conflicts) return inner().Commit(std::move(txn));
  return OpenConflicts(opener_, inner().Commit(std::move(txn)));
}

rt::Task<Result<RangeResult>> SealedStore::Range(RangeRequest request) {
  if (request.keys_only || !opener_->sealed.Meets(request.start, request.end)) {
    return inner().Range(std::move(request));
  }
  return OpenItems(opener_, inner().Range(std::move(request)));
}

rt::Task<Result<std::unique_ptr<Watch>>> SealedStore::StartWatch(WatchRequest request) {
  if (!opener_->sealed.Meets(request.start, request.end)) {
    return inner().StartWatch(std::move(request));
  }
  return OpenWatch(opener_, inner().StartWatch(std::move(request)));
}

namespace {

rt::Task<Status> ResealPrefix(Store* inner,
                              std::shared_ptr<KeyFile> keys,
                              std::string prefix,
                              Resealed* resealed) {
  RangeRequest request;
  request.start = prefix;
  request.end = PrefixEnd(prefix);
  request.limit = kResealPage;
  while (true) {
    CO_TRY(const RangeResult page, co_await inner->Range(request));
    for (const KeyValue& item : page.items) {
      ++resealed->values;
      if (SealedWith(item.value.view()) == keys->ring().first().id) continue;
      const Result<Bytes> plain = keys->Open(item.key, item.value);
      // It does not keep the others from being sealed anew, but its key has to stay.
      if (plain.status().Is(Reason::kInternal)) {
        if (resealed->unreadable.empty()) resealed->unreadable = item.key;
        continue;
      }
      CO_TRY_STATUS(plain);
      Txn txn;
      txn.conditions.push_back(Condition::Unchanged(item.key, item.mod_revision));
      txn.ops.push_back(Op::Put(item.key, keys->Seal(item.key, plain->view()), item.lease));
      // Whoever was faster has used the first key, or is met by the next pass.
      CO_TRY_STATUS(co_await inner->Commit(std::move(txn)));
      ++resealed->changed;
    }
    if (!page.more) co_return OkStatus();
    request.start = page.items.back().key + '\0';
    CO_TRY_STATUS(co_await rt::Yield());
  }
}

}  // namespace

rt::Task<Result<Resealed>> ResealAll(store::Store& inner,
                                     std::shared_ptr<KeyFile> keys,
                                     SealedKeys sealed) {
  Resealed total;
  for (int left = kResealPasses;; --left) {
    Resealed pass;
    for (const std::string& prefix : sealed.prefixes) {
      CO_TRY_STATUS(co_await ResealPrefix(&inner, keys, prefix, &pass));
    }
    total.values = pass.values;
    total.changed += pass.changed;
    if (pass.changed != 0 && left > 1) continue;
    if (pass.unreadable.empty()) co_return total;
    co_return Internal("all values but " + Quote(pass.unreadable) +
                       " are encrypted anew: it cannot be read; berth delete --force removes it");
  }
}

}  // namespace berth::store
