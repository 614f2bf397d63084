// SPDX-License-Identifier: Apache-2.0
#include "app/leading/candidacy.h"

#include <utility>

#include "apis/k8s/lease.h"
#include "apiserver/cache/keys.h"
#include "base/log.h"
#include "base/strings.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

// A leader that dies is followed after this much, at most. Shorter, and a busy machine loses it.
constexpr Duration kLease = Duration::Seconds(2);
constexpr Duration kRenewEvery = Duration::Millis(500);
constexpr Duration kAttemptLimit = Duration::Seconds(1);
constexpr Duration kTryAgain = Duration::Millis(100);
constexpr int kGuardAttempts = 50;

client::ObjectKey LeaseKey() { return {.namespace_ = kServerNamespace, .name = kLeaderLease}; }

}  // namespace

Candidacy::Candidacy(Deps deps, CandidacyOptions options)
    : deps_(deps),
      options_(std::move(options)),
      holder_(options_.id + '_' + options_.run),
      lease_(
          deps.loop,
          deps.client,
          client::LeaderOptions{.lease = LeaseKey(),
                                .holder = holder_,
                                .duration = kLease,
                                .renew_every = kRenewEvery,
                                .try_again = kTryAgain,
                                .attempt_limit = kAttemptLimit,
                                // Whoever used this folder before is dead: the folder is locked.
                                .is_dead =
                                    [this](const std::string& holder) {
                                      return holder.starts_with(options_.id + '_');
                                    },
                                .annotations = {{kUrlAnnotation, options_.url}},
                                .on_other =
                                    [this](const std::map<std::string, std::string>& annotations) {
                                      OnOther(annotations);
                                    }},
          [this](std::optional<int64_t> term) { OnTerm(term); }) {}

void Candidacy::OnTerm(std::optional<int64_t> term) {
  if (!term) {
    LOG_WARNING("the leader's lease was not renewed in time: nothing is done until it is");
  } else if (!term_) {
    term_ = term;
    elected_.Set();
  } else if (*term != *term_) {
    Depose();
  }
}

void Candidacy::OnOther(const std::map<std::string, std::string>& annotations) {
  const auto url = annotations.find(kUrlAnnotation);
  if (options_.on_leader && url != annotations.end()) options_.on_leader(url->second);
  if (term_) Depose();
}

std::optional<Candidacy::Leader> Candidacy::other() const {
  const std::optional<Time> until = lease_.other_until();
  if (!until || deps_.loop.Now() >= *until) return std::nullopt;
  const std::string& holder = lease_.other();
  return Leader{.id = holder.substr(0, holder.rfind('_')), .holder = holder, .until = *until};
}

void Candidacy::Depose() {
  if (std::exchange(is_deposed_, true)) return;
  LOG_WARNING("another server leads");
  if (options_.on_deposed) options_.on_deposed();
}

rt::Task<Result<store::Condition>> Candidacy::Elected() {
  CO_TRY_STATUS(co_await elected_.Wait());
  auto guard = co_await RaiseGuard();
  if (!guard.ok()) co_return guard;
  is_guarded_ = true;
  LOG_INFO("leading, term {}", *term_);
  co_return guard;
}

// The guard is written only while the lease is ours, in one commit.
rt::Task<Result<store::Condition>> Candidacy::RaiseGuard() {
  for (int attempt = 0; attempt < kGuardAttempts && !is_deposed_; ++attempt) {
    CO_TRY(const meta::Object lease, co_await deps_.client.Get(apis::k8s::kLeaseKind, LeaseKey()));
    if (lease.as<apis::k8s::Lease>().spec.holder_identity != holder_) break;
    const auto revision = ParseInt(lease.metadata().resource_version);
    if (!revision) co_return Internal("lease leader: resourceVersion");
    store::RangeRequest request;
    request.start = kLeaderGuard;
    CO_TRY(const store::RangeResult found, co_await deps_.store.Range(std::move(request)));
    store::Txn txn;
    txn.conditions.push_back(store::Condition::Unchanged(
        apiserver::StoreKey(apis::k8s::kLeaseKind, LeaseKey()), {.value = *revision}));
    txn.conditions.push_back(store::Condition::Absent(std::string(kLeaderGuard)));
    if (!found.items.empty()) txn.conditions.back().mod_revision = found.items[0].mod_revision;
    txn.ops.push_back(store::Op::Put(std::string(kLeaderGuard), Bytes(holder_)));
    CO_TRY(const store::TxnResult result, co_await deps_.store.Commit(std::move(txn)));
    if (result.committed) {
      co_return store::Condition::Unchanged(std::string(kLeaderGuard), result.revision);
    }
    // The lease was renewed meanwhile, or taken.
    CO_TRY_STATUS(co_await rt::Sleep(kTryAgain));
  }
  Depose();
  co_return Conflict("another server leads");
}

rt::Task<Status> Candidacy::Leave() {
  if (is_deposed_ || !term_) co_return OkStatus();
  co_return co_await lease_.Release();
}

}  // namespace berth::app
