// SPDX-License-Identifier: Apache-2.0
#include "controller/quota/quota_count.h"

#include <map>
#include <utility>

#include "apis/compute/machine_class.h"
#include "apis/quota/names.h"
#include "apis/quota/usage.h"
#include "apis/storage/bucket_class.h"
#include "base/log.h"
#include "controller/object_failure.h"
#include "rt/backoff.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::controller {

namespace {

using apis::core::kResourceQuotaKind;
using apis::core::ResourceList;
using apis::core::ResourceQuota;

constexpr size_t kWorkers = 2;
// Many deletions at once are counted once.
constexpr Duration kGather = Duration::Millis(100);
constexpr Duration kCorrectEvery = Duration::Minutes(10);
// 500 decoded objects * 3.5 KiB = 1.8 MiB at a time.
constexpr size_t kPage = 500;

std::optional<meta::Object> FindIn(const std::vector<meta::Object>& classes,
                                   const meta::KindInfo& kind,
                                   std::string_view name) {
  for (const meta::Object& object : classes) {
    if (&object.kind() == &kind && object.metadata().name == name) return object;
  }
  return std::nullopt;
}

}  // namespace

QuotaCount::QuotaCount(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      scheme_(scheme),
      runner_(loop, "quota", *this, kWorkers),
      quotas_(loop,
              client,
              kResourceQuotaKind,
              [this](const meta::Object* before, const meta::Object* now) {
                if (now == nullptr) return;
                const auto& quota = now->as<ResourceQuota>();
                const bool is_new =
                    before == nullptr || before->as<ResourceQuota>().spec != quota.spec;
                bool is_unknown = false;
                for (const auto& [name, limit] : apis::quota::Canonical(scheme_, quota.spec.hard)) {
                  is_unknown = is_unknown || !quota.status.used.contains(name);
                }
                if (is_new || is_unknown) runner_.queue().Add(now->metadata().namespace_);
              }) {
  for (const meta::KindInfo* kind : apis::quota::CountedKinds()) {
    counted_.push_back({.kind = kind, .state = client::FollowState(loop)});
  }
}

void QuotaCount::Report(client::HealthReport& report) const {
  runner_.Report(report, quotas_);
  for (const Followed& followed : counted_) report.Add(runner_.name(), followed.state);
}

rt::Task<Status> QuotaCount::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(quotas_.Run());
  for (Followed& followed : counted_) tasks.push_back(Follow(&followed));
  tasks.push_back(CorrectNowAndThen());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

rt::Task<Status> QuotaCount::CorrectNowAndThen() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kCorrectEvery));
    CountEverywhere();
  }
}

void QuotaCount::CountEverywhere() {
  for (const auto& [key, quota] : quotas_.objects()) runner_.queue().Add(key.namespace_);
}

rt::Task<Status> QuotaCount::Follow(Followed* followed) {
  rt::Backoff backoff;
  for (;;) {
    const Time begun = loop_.Now();
    const Status status = co_await FollowOnce(followed);
    if (status.Is(Reason::kCancelled)) co_return status;
    if (status.Is(Reason::kExpired)) {
      followed->state.OnWatchEnd();
    } else {
      followed->state.OnFailure();
    }
    if (loop_.Now() - begun > Duration::Minutes(1)) backoff.Reset();
    const Duration pause = backoff.Next(loop_.random());
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

// From now on, without a list: what is there already was counted when its quota was new.
rt::Task<Status> QuotaCount::FollowOnce(Followed* followed) {
  const meta::KindInfo& kind = *followed->kind;
  client::ListOptions now;
  now.detail = client::Detail::kMetadata;
  now.limit = 1;
  CO_TRY(const client::ObjectList list, co_await client_.List(kind, std::move(now)));
  followed->state.OnListed();  // no news: it is asked before each watch, which may fail each time
  client::WatchOptions options;
  options.detail = client::Detail::kMetadata;
  options.resource_version = list.resource_version;
  CO_TRY(const std::unique_ptr<client::ObjectWatch> watch,
         co_await client_.Watch(kind, std::move(options)));
  followed->state.OnWatchBegin();
  // What went while there was no watch is not known.
  CountEverywhere();
  for (;;) {
    CO_TRY(const std::vector<client::WatchEvent> events, co_await watch->Next());
    followed->state.OnNews();
    for (const client::WatchEvent& event : events) {
      const meta::ObjectMeta& metadata = event.object.metadata();
      const bool may_use_less =
          event.type == client::WatchEvent::Type::kDeleted ||
          (event.type == client::WatchEvent::Type::kModified && metadata.generation > 1);
      if (may_use_less) OnFreed(metadata.namespace_);
    }
  }
}

bool QuotaCount::HasQuotas(const std::string& namespace_) const {
  const auto first = quotas_.objects().lower_bound({.namespace_ = namespace_, .name = ""});
  return first != quotas_.objects().end() && first->first.namespace_ == namespace_;
}

void QuotaCount::OnFreed(const std::string& namespace_) {
  if (HasQuotas(namespace_)) runner_.queue().AddAfter(namespace_, kGather);
}

rt::Task<Result<std::optional<Duration>>> QuotaCount::Reconcile(std::string namespace_) {
  client::ListOptions options;
  options.namespace_ = namespace_;
  CO_TRY(client::ObjectList quotas, co_await client_.List(kResourceQuotaKind, std::move(options)));
  if (quotas.items.empty()) co_return std::optional<Duration>();
  CO_TRY(const std::vector<meta::Object> classes, co_await ListClasses());
  Status failure;  // of one of them: the others are counted all the same
  for (meta::Object& quota : quotas.items) {
    Status counted = co_await CountOne(std::move(quota), classes);
    if (!counted.ok() && !IsObjectFailure(counted)) co_return counted;
    if (!counted.ok()) failure = std::move(counted);
  }
  CO_TRY_STATUS(failure);
  co_return std::optional<Duration>();
}

rt::Task<Result<std::vector<meta::Object>>> QuotaCount::ListClasses() {
  std::vector<meta::Object> classes;
  for (const meta::KindInfo* kind :
       {&apis::compute::kMachineClassKind, &apis::storage::kBucketClassKind}) {
    client::ListOptions options;
    CO_TRY(client::ObjectList list, co_await client_.List(*kind, std::move(options)));
    for (meta::Object& object : list.items) classes.push_back(std::move(object));
  }
  co_return classes;
}

rt::Task<Status> QuotaCount::CountOne(meta::Object object, std::vector<meta::Object> classes) {
  auto& quota = object.as<ResourceQuota>();
  const apis::quota::ClassFinder finder = [&classes](const meta::KindInfo& kind,
                                                     std::string_view name) {
    return FindIn(classes, kind, name);
  };
  ResourceList limits = apis::quota::Canonical(scheme_, quota.spec.hard);
  ResourceList used;
  for (const auto& [name, limit] : limits) used[name] = {};
  for (const meta::KindInfo* kind : apis::quota::CountedKinds()) {
    client::ListOptions options;
    options.namespace_ = quota.metadata.namespace_;
    options.limit = kPage;
    do {
      CO_TRY(const client::ObjectList page, co_await client_.List(*kind, options));
      options.continue_token = page.continue_token;
      for (const meta::Object& user : page.items) {
        if (!apis::quota::InScope(quota, user)) continue;
        const Result<ResourceList> usage = apis::quota::UsageOf(user, finder);
        // An object whose class is gone was made before the class was protected; it counts nothing.
        if (usage.ok()) apis::quota::AddLimited(used, *usage, limits);
      }
      if (!options.continue_token.empty()) CO_TRY_STATUS(co_await rt::Yield());
    } while (!options.continue_token.empty());
  }
  if (quota.status.used == used && quota.status.hard == limits) co_return OkStatus();
  quota.status.used = std::move(used);
  quota.status.hard = std::move(limits);
  const client::WriteOptions options{.dry_run = client::DryRun::kNo,
                                     .subresource = client::Subresource::kStatus};
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  co_return written.status().Is(Reason::kNotFound) ? OkStatus() : written.status();
}

}  // namespace berth::controller
