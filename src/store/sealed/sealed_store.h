// SPDX-License-Identifier: Apache-2.0
// A SealedStore is a store in front of another that encrypts the values of chosen keys: what lies
// in the other one, its history and its files is unreadable without a key. Everything else passes
// through untouched and costs nothing. It keeps the contract of store.h; a value may be
// at most kSealedMore bytes shorter than there.
//
// Errors beyond the contract's: Internal, for a value whose key is missing or that was changed,
// with the id of the key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rt/task.h"
#include "store/passing_store.h"
#include "store/sealed/key_file.h"
#include "store/store.h"

namespace berth::store {

// Ranges of keys whose values are sealed, all with a prefix or one key.
struct SealedKeys {
  std::vector<std::string> prefixes;
  bool Has(std::string_view key) const;
  bool Meets(std::string_view start, std::string_view end) const;
};

class SealedStore final : public PassingStore {
 public:
  // `inner` outlives this; watches keep `keys` alive.
  SealedStore(Store& inner, std::shared_ptr<KeyFile> keys, SealedKeys sealed);

  rt::Task<Result<TxnResult>> Commit(Txn txn) override;
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override;
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override;

 private:
  class SealedWatch;
  struct Opener;
  static rt::Task<Result<TxnResult>> OpenConflicts(std::shared_ptr<Opener> opener,
                                                   rt::Task<Result<TxnResult>> call);
  static rt::Task<Result<RangeResult>> OpenItems(std::shared_ptr<Opener> opener,
                                                 rt::Task<Result<RangeResult>> call);
  static rt::Task<Result<std::unique_ptr<Watch>>> OpenWatch(
      std::shared_ptr<Opener> opener, rt::Task<Result<std::unique_ptr<Watch>>> call);

  std::shared_ptr<Opener> opener_;  // shared with watches and calls under way
};

struct Resealed {
  size_t values = 0;  // that are sealed with the first key now
  size_t changed = 0;
  std::string unreadable;  // the first key whose value no key opens
};
// Seals everything with the first key that is not, a page and a commit per value at a time, while
// others read and write. Safe to break off and to begin anew. `inner` is the store behind the
// SealedStore. What another server goes on sealing with an older key is not waited for: it is that
// server's to do, when it has the same first key.
rt::Task<Result<Resealed>> ResealAll(store::Store& inner,
                                     std::shared_ptr<KeyFile> keys,
                                     SealedKeys sealed);

}  // namespace berth::store
