// SPDX-License-Identifier: Apache-2.0
// The QuotaLedger charges writes against the quotas of their namespace. What a quota's status says
// is used is rewritten in the very commit that uses it, on the condition that nobody else changed
// it: no quota is ever exceeded, whoever writes at the same time.
//
// Writes to one namespace with quotas go one after another (on this server), because in parallel
// all but one would fail and try again. Namespaces without quotas are not held up.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/resource_quota.h"
#include "apiserver/admission/admission.h"
#include "apiserver/registry/write_parts.h"
#include "base/result.h"
#include "rt/gate.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

// The quotas that one commit has to respect, with what it has charged so far.
class QuotaCharges {
 public:
  QuotaCharges(const meta::Scheme& scheme,
               const WatchCache& cache,
               const std::set<std::string>& in);

  // Forbidden if what the object uses more than before (null: it is new) exceeds a quota; nothing
  // is charged then.
  Status Charge(const meta::Object* before, const meta::Object& object);
  // Binds the commit to the quotas, and rewrites those that were charged.
  Status AddTo(store::Txn& txn) const;

 private:
  struct Entry {
    meta::Object quota;
    apis::core::ResourceList limits;  // spec.hard under canonical names, as status.used is
    store::Revision revision;
    bool charged = false;
  };
  Result<apis::core::ResourceList> Growth(const Entry& entry,
                                          const meta::Object* before,
                                          const meta::Object& object) const;
  Status CheckFits(const Entry& entry,
                   const meta::Object& object,
                   const apis::core::ResourceList& growth) const;

  const meta::Scheme& scheme_;
  CacheSource source_;
  std::vector<Entry> entries_;
};

class QuotaLedger {
 public:
  // Held while a commit is made.
  using Permits = std::vector<rt::Gate::Permit>;

  QuotaLedger(const meta::Scheme& scheme, const WatchCache& cache)
      : scheme_(scheme), cache_(cache) {}

  static bool IsQuota(const meta::KindInfo& kind);
  // Whether quotas count objects of this kind.
  static bool IsCounted(const meta::KindInfo& kind);
  // A quota that counts something else than before does not know what is used until it is counted
  // anew.
  void ForgetStaleUse(const meta::Object& before, meta::Object& now) const;

  // How many keys of a transaction the quotas of a namespace may take.
  size_t KeysFor(const std::string& namespace_) const;
  // Whether the change may use more of some quota.
  bool Concerns(const meta::Object& before, const meta::Object& now) const;

  // Waits for its turn in every one of these namespaces that has quotas.
  rt::Task<Result<Permits>> Enter(std::set<std::string> namespaces);
  QuotaCharges Begin(const std::set<std::string>& namespaces) const {
    return QuotaCharges(scheme_, cache_, namespaces);
  }
  // Whether the change would be taken, without making it.
  Status Preview(const meta::Object& before, const meta::Object& now) const;

 private:
  const meta::Scheme& scheme_;
  const WatchCache& cache_;
  // One per namespace that ever had a quota: bounded by the number of namespaces.
  std::map<std::string, std::unique_ptr<rt::Gate>, std::less<>> gates_;
};

}  // namespace berth::apiserver
