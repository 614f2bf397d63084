// SPDX-License-Identifier: Apache-2.0
#include "controller/quota/quota_count.h"

#include <map>
#include <utility>

#include "apis/compute/machine_class.h"
#include "apis/quota/usage.h"
#include "apis/storage/bucket_class.h"
#include "base/log.h"
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

// Hears of objects that go or change; keeps nothing.
class QuotaCount::UserSink final : public client::Sink {
 public:
  UserSink(QuotaCount& controller, const meta::KindInfo& kind)
      : controller_(controller),
        reflector_(controller.loop_,
                   controller.client_,
                   kind,
                   *this,
                   {.namespace_ = "",
                    .label_selector = "",
                    .field_selector = "",
                    .detail = client::Detail::kMetadata}) {}

  rt::Task<Status> Run() { return reflector_.Run(); }

  void OnListBegin() override {}
  void OnListed(meta::Object) override {}
  void OnListEnd() override {
    // What went while there was no watch is not known: count everywhere.
    for (const auto& [key, quota] : controller_.quotas_.objects()) {
      controller_.OnFreed(key.namespace_);
    }
  }
  void OnEvent(client::WatchEvent event) override {
    const meta::ObjectMeta& metadata = event.object.metadata();
    const bool may_use_less =
        event.type == client::WatchEvent::Type::kDeleted ||
        (event.type == client::WatchEvent::Type::kModified && metadata.generation > 1);
    if (may_use_less) controller_.OnFreed(metadata.namespace_);
  }

 private:
  QuotaCount& controller_;
  client::Reflector reflector_;
};

QuotaCount::QuotaCount(rt::Loop& loop, client::Client& client)
    : loop_(loop),
      client_(client),
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
                for (const auto& [name, limit] : quota.spec.hard) {
                  is_unknown = is_unknown || !quota.status.used.contains(name);
                }
                if (is_new || is_unknown) runner_.queue().Add(now->metadata().namespace_);
              }) {
  for (const meta::KindInfo* kind : apis::quota::CountedKinds()) {
    users_.push_back(std::make_unique<UserSink>(*this, *kind));
  }
}

QuotaCount::~QuotaCount() = default;

rt::Task<Status> QuotaCount::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(quotas_.Run());
  for (const auto& user : users_) tasks.push_back(user->Run());
  tasks.push_back(CorrectNowAndThen());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

rt::Task<Status> QuotaCount::CorrectNowAndThen() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kCorrectEvery));
    for (const auto& [key, quota] : quotas_.objects()) runner_.queue().Add(key.namespace_);
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
  for (meta::Object& quota : quotas.items) {
    CO_TRY_STATUS(co_await CountOne(std::move(quota), classes));
  }
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
  ResourceList used;
  for (const auto& [name, limit] : quota.spec.hard) used[name] = {};
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
        if (usage.ok()) apis::quota::AddLimited(used, *usage, quota.spec.hard);
      }
      if (!options.continue_token.empty()) CO_TRY_STATUS(co_await rt::Yield());
    } while (!options.continue_token.empty());
  }
  if (quota.status.used == used && quota.status.hard == quota.spec.hard) co_return OkStatus();
  quota.status.used = std::move(used);
  quota.status.hard = quota.spec.hard;
  const client::WriteOptions options{.dry_run = client::DryRun::kNo,
                                     .subresource = client::Subresource::kStatus};
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  co_return written.status().Is(Reason::kNotFound) ? OkStatus() : written.status();
}

}  // namespace berth::controller
