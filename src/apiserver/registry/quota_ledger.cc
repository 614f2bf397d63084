// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/quota_ledger.h"

#include <utility>

#include "apis/quota/names.h"
#include "apis/quota/usage.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "base/strings.h"

namespace berth::apiserver {

namespace {

using apis::core::kResourceQuotaKind;
using apis::core::ResourceList;
using apis::core::ResourceQuota;

size_t CountQuotas(const WatchCache& cache, std::string_view namespace_) {
  const KindCache::Objects& all = cache.Of(kResourceQuotaKind).objects();
  const std::string scope = std::string(namespace_) + '/';
  size_t count = 0;
  for (auto at = all.lower_bound(scope); at != all.end() && at->first.starts_with(scope); ++at) {
    ++count;
  }
  return count;
}

}  // namespace

QuotaCharges::QuotaCharges(const meta::Scheme& scheme,
                           const WatchCache& cache,
                           const std::set<std::string>& in)
    : scheme_(scheme), source_(cache) {
  for (const std::string& namespace_ : in) {
    if (namespace_.empty()) continue;
    for (meta::Object& quota : source_.List(kResourceQuotaKind, namespace_)) {
      const store::Revision revision{ParseInt(quota.metadata().resource_version).value_or(0)};
      ResourceList limits = apis::quota::Canonical(scheme, quota.as<ResourceQuota>().spec.hard);
      entries_.push_back(
          {.quota = std::move(quota), .limits = std::move(limits), .revision = revision});
    }
  }
}

Result<ResourceList> QuotaCharges::Growth(const Entry& entry,
                                          const meta::Object* before,
                                          const meta::Object& object) const {
  const apis::quota::ClassFinder classes = [this](const meta::KindInfo& kind,
                                                  std::string_view name) {
    return source_.Find(kind, {.namespace_ = "", .name = std::string(name)});
  };
  const auto& quota = entry.quota.as<ResourceQuota>();
  ResourceList growth;
  if (apis::quota::InScope(quota, object)) {
    TRY(const ResourceList usage, apis::quota::UsageOf(object, classes));
    apis::quota::AddLimited(growth, usage, entry.limits);
  }
  if (before != nullptr && apis::quota::InScope(quota, *before)) {
    TRY(const ResourceList usage, apis::quota::UsageOf(*before, classes));
    for (const auto& [name, amount] : usage) {
      if (growth.contains(name)) growth[name] -= amount;
    }
  }
  // What shrinks is given back by the controller, which counts what is really there.
  std::erase_if(growth, [](const auto& item) { return item.second.Sign() <= 0; });
  return growth;
}

Status QuotaCharges::CheckFits(const Entry& entry,
                               const meta::Object& object,
                               const ResourceList& growth) const {
  const auto& quota = entry.quota.as<ResourceQuota>();
  const KindErrors errors(scheme_, object.kind());
  ResourceList unknown;
  ResourceList exceeded;
  for (const auto& [name, amount] : growth) {
    const auto used = quota.status.used.find(name);
    if (used == quota.status.used.end()) {
      unknown[name] = amount;
    } else if (used->second + amount > entry.limits.at(name)) {
      exceeded[name] = amount;
    }
  }
  if (!unknown.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, amount] : unknown) names.push_back(name);
    return errors
        .Forbidden(
            object.metadata().name,
            "status unknown for quota: " + quota.metadata.name + ", resources: " + Join(names, ","))
        .WithRetryAfter(Duration::Seconds(1));
  }
  if (exceeded.empty()) return OkStatus();
  return errors.Forbidden(object.metadata().name,
                          "exceeded quota: " + quota.metadata.name +
                              ", requested: " + apis::quota::Describe(growth, exceeded) +
                              ", used: " + apis::quota::Describe(quota.status.used, exceeded) +
                              ", limited: " + apis::quota::Describe(entry.limits, exceeded));
}

Status QuotaCharges::Charge(const meta::Object* before, const meta::Object& object) {
  if (entries_.empty() || !apis::quota::IsCounted(object.kind())) return OkStatus();
  std::vector<std::pair<Entry*, ResourceList>> growths;
  for (Entry& entry : entries_) {
    if (entry.quota.metadata().namespace_ != object.metadata().namespace_) continue;
    TRY(ResourceList growth, Growth(entry, before, object));
    TRY_STATUS(CheckFits(entry, object, growth));
    if (!growth.empty()) growths.emplace_back(&entry, std::move(growth));
  }
  for (auto& [entry, growth] : growths) {
    auto& used = entry->quota.as<ResourceQuota>().status.used;
    apis::quota::AddLimited(used, growth, entry->limits);
    entry->charged = true;
  }
  return OkStatus();
}

Status QuotaCharges::AddTo(store::Txn& txn) const {
  for (const Entry& entry : entries_) {
    const meta::ObjectMeta& metadata = entry.quota.metadata();
    std::string key =
        StoreKey(kResourceQuotaKind, {.namespace_ = metadata.namespace_, .name = metadata.name});
    txn.conditions.push_back(store::Condition::Unchanged(key, entry.revision));
    if (!entry.charged) continue;
    TRY(Bytes at_rest, Encode(scheme_, entry.quota));
    txn.ops.push_back(store::Op::Put(std::move(key), std::move(at_rest)));
  }
  return OkStatus();
}

bool QuotaLedger::IsQuota(const meta::KindInfo& kind) { return &kind == &kResourceQuotaKind; }

bool QuotaLedger::IsCounted(const meta::KindInfo& kind) { return apis::quota::IsCounted(kind); }

void QuotaLedger::ForgetStaleUse(const meta::Object& before, meta::Object& now) const {
  if (!IsQuota(now.kind())) return;
  const auto& old_spec = before.as<ResourceQuota>().spec;
  auto& quota = now.as<ResourceQuota>();
  if (old_spec.scope_selector != quota.spec.scope_selector) quota.status.used.clear();
  const ResourceList limits = apis::quota::Canonical(scheme_, quota.spec.hard);
  std::erase_if(quota.status.used,
                [&limits](const auto& item) { return !limits.contains(item.first); });
}

size_t QuotaLedger::KeysFor(const std::string& namespace_) const {
  return namespace_.empty() ? 0 : 2 * CountQuotas(cache_, namespace_);
}

bool QuotaLedger::Concerns(const meta::Object& before, const meta::Object& now) const {
  return apis::quota::IsCounted(now.kind()) &&
         before.metadata().generation != now.metadata().generation &&
         CountQuotas(cache_, now.metadata().namespace_) > 0;
}

rt::Task<Result<QuotaLedger::Permits>> QuotaLedger::Enter(std::set<std::string> namespaces) {
  Permits permits;
  // In the order of names, so that two writers never wait for each other.
  for (const std::string& namespace_ : namespaces) {
    if (namespace_.empty() || CountQuotas(cache_, namespace_) == 0) continue;
    std::unique_ptr<rt::Gate>& gate = gates_[namespace_];
    if (gate == nullptr) gate = std::make_unique<rt::Gate>(1);
    CO_TRY(rt::Gate::Permit permit, co_await gate->Enter());
    permits.push_back(std::move(permit));
  }
  co_return permits;
}

Status QuotaLedger::Preview(const meta::Object& before, const meta::Object& now) const {
  if (!Concerns(before, now)) return OkStatus();
  QuotaCharges charges = Begin({now.metadata().namespace_});
  return charges.Charge(&before, now);
}

}  // namespace berth::apiserver
