// SPDX-License-Identifier: Apache-2.0
#include "controller/class_protection/class_protection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/k8s/priority_class.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "base/check.h"
#include "controller/finalizers.h"
#include "rt/join_all.h"

namespace berth::controller {

struct ClassProtection::Rule {
  const meta::KindInfo* class_kind;
  std::string_view finalizer;
  const meta::KindInfo* user_kind;
  std::string_view selector;  // of the user kind
  // Others that use it, if there are any.
  const meta::KindInfo* other_kind = nullptr;
  std::string_view other_selector;
};

namespace {

// A deleted class that is in use is looked at this often. Following all users instead would cost a
// decoded object per write in the cluster.
constexpr Duration kLookAgain = Duration::Seconds(1);

// Whether what cannot be read may use the class. One whose header can be read was selected by it.
// Otherwise nobody knows, and its bytes decide: names stand in them as they are. What is lost
// altogether keeps no class; a class is no room that could be given away twice (ADR 0038).
bool MayUse(const client::Unread& unread, std::string_view name) {
  return !unread.uid.empty() || unread.at_rest.view().find(name) != std::string_view::npos;
}

}  // namespace

const std::vector<ClassProtection::Rule>& ClassProtection::Rules() {
  static const std::vector<Rule> rules = {
      {&apis::compute::kMachineClassKind,
       apis::core::kMachineClassFinalizer,
       &apis::compute::kMachineKind,
       "spec.machineClassRef.name",
       &apis::core::kReservationKind,
       "spec.classRef.name"},
      {&apis::storage::kVolumeClassKind,
       apis::core::kVolumeClassFinalizer,
       &apis::storage::kVolumeKind,
       "spec.volumeClassRef.name"},
      {&apis::storage::kBucketClassKind,
       apis::core::kBucketClassFinalizer,
       &apis::storage::kBucketKind,
       "spec.bucketClassRef.name"},
      {&apis::k8s::kPriorityClassKind,
       apis::core::kPriorityClassFinalizer,
       &apis::compute::kMachineKind,
       "spec.placement.priorityClassName"},
  };
  return rules;
}

ClassProtection::ClassProtection(rt::Loop& loop, client::Client& client)
    : client_(client), runner_(loop, "class protection", *this, 1) {
  for (size_t i = 0; i < Rules().size(); ++i) {
    const Rule& rule = Rules()[i];
    client::Informer::OnChange on_change = [this, i, &rule](const meta::Object*,
                                                            const meta::Object* now) {
      if (now == nullptr) return;
      const bool has_finalizer = HasFinalizer(now->metadata(), rule.finalizer);
      if (has_finalizer == now->metadata().deletion_timestamp.has_value()) {
        runner_.queue().Add(std::to_string(i) + '/' + now->metadata().name);
      }
    };
    classes_.push_back(
        std::make_unique<client::Informer>(loop, client, *rule.class_kind, std::move(on_change)));
  }
}

ClassProtection::~ClassProtection() = default;

rt::Task<Status> ClassProtection::Run() {
  std::vector<rt::Task<Status>> tasks;
  for (const auto& informer : classes_) tasks.push_back(informer->Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void ClassProtection::Report(client::HealthReport& report) const {
  runner_.Report(report);
  for (const auto& informer : classes_) report.Add(runner_.name(), *informer);
}

rt::Task<Result<std::optional<Duration>>> ClassProtection::Reconcile(std::string key) {
  const size_t slash = key.find('/');
  CHECK(slash == 1) << key;
  const auto index = static_cast<size_t>(key[0] - '0');
  const Rule& rule = Rules()[index];
  const std::string name = key.substr(slash + 1);
  client::ObjectKey object_key{.namespace_ = "", .name = name};
  const Result<meta::Object> object = co_await client_.Get(*rule.class_kind, object_key);
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(object);
  const std::string uid = object->metadata().uid;
  const std::string finalizer(rule.finalizer);
  if (!object->metadata().deletion_timestamp) {
    std::function<bool(meta::ObjectMeta&)> add = [finalizer](meta::ObjectMeta& metadata) {
      if (metadata.deletion_timestamp || HasFinalizer(metadata, finalizer)) return false;
      metadata.finalizers.push_back(finalizer);
      return true;
    };
    CO_TRY_STATUS(co_await EditMetadata(
        client_, *rule.class_kind, std::move(object_key), uid, std::move(add)));
    co_return std::optional<Duration>();
  }
  if (!HasFinalizer(object->metadata(), rule.finalizer)) co_return std::optional<Duration>();
  CO_TRY(const bool is_used, co_await IsUsed(index, name));
  if (is_used) co_return kLookAgain;
  CO_TRY_STATUS(
      co_await RemoveFinalizer(client_, *rule.class_kind, std::move(object_key), uid, finalizer));
  co_return std::optional<Duration>();
}

rt::Task<Result<bool>> ClassProtection::IsUsed(size_t index, std::string name) {
  const Rule& rule = Rules()[index];
  CO_TRY(const bool is_used, co_await HasUsers(*rule.user_kind, rule.selector, name));
  if (is_used || rule.other_kind == nullptr) co_return is_used;
  co_return co_await HasUsers(*rule.other_kind, rule.other_selector, name);
}

rt::Task<Result<bool>> ClassProtection::HasUsers(const meta::KindInfo& kind,
                                                 std::string_view selector,
                                                 std::string name) {
  client::ListOptions options{.namespace_ = "",
                              .label_selector = "",
                              .field_selector = std::string(selector) + '=' + name,
                              .detail = client::Detail::kMetadata,
                              .limit = 1,
                              .continue_token = "",
                              .resource_version = "",
                              .unreadable = client::Unreadable::kName};
  CO_TRY(const client::ObjectList users, co_await client_.List(kind, std::move(options)));
  const auto may_use = [&name](const client::Unread& unread) { return MayUse(unread, name); };
  co_return !users.items.empty() || std::ranges::any_of(users.unread, may_use);
}

}  // namespace berth::controller
