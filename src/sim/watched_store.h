// SPDX-License-Identifier: Apache-2.0
// A WatchedStore remembers what the store behind it acknowledged, and dies with its process: from
// then on nothing passes, and what was under way has an unknown outcome.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/store.h"

namespace berth::sim {

// What was acknowledged, over the lives of all server processes.
struct Acknowledged {
  struct Write {
    store::Revision revision;
    bool is_deleted = false;
  };
  std::map<std::string, Write> writes;  // the last one of every key; keys with a lease are left out
  std::set<std::string> unknown;        // keys of commits without an answer
};

class WatchedStore final : public store::Store {
 public:
  // Both outlive this.
  WatchedStore(store::Store& inner, Acknowledged& acknowledged)
      : inner_(inner), acknowledged_(acknowledged) {}

  void Die() { dead_ = true; }

  rt::Task<Result<store::TxnResult>> Commit(store::Txn txn) override;
  rt::Task<Result<store::RangeResult>> Range(store::RangeRequest request) override;
  rt::Task<Result<std::unique_ptr<store::Watch>>> StartWatch(store::WatchRequest request) override;
  rt::Task<Status> Compact(store::Revision revision) override;
  rt::Task<Result<store::Revision>> CurrentRevision() override;
  rt::Task<Result<store::Revision>> CompactedRevision() override;
  rt::Task<Result<store::LeaseId>> GrantLease(Duration ttl) override;
  rt::Task<Status> RenewLease(store::LeaseId lease) override;
  rt::Task<Status> RevokeLease(store::LeaseId lease) override;

 private:
  store::Store& inner_;
  Acknowledged& acknowledged_;
  bool dead_ = false;
};

}  // namespace berth::sim
