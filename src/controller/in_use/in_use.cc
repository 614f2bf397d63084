// SPDX-License-Identifier: Apache-2.0
#include "controller/in_use/in_use.h"

#include <algorithm>
#include <utility>

#include "apis/core/well_known.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apis/storage/volume.h"
#include "base/strings.h"
#include "controller/finalizers.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

constexpr size_t kWorkers = 2;
// Following all machines instead would cost a decoded object per write in the cluster.
constexpr Duration kLookAgain = Duration::Seconds(1);
// With more than a thousand that wait, each is looked at less often.
constexpr Duration kPerWaiting = Duration::Millis(1);
// Events live for an hour.
constexpr Duration kTellAgain = Duration::Seconds(30 * 60);

bool Waits(const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  return metadata.deletion_timestamp && HasFinalizer(metadata, apis::InUseFinalizer(object.kind()));
}

// What was asked before about its dependents is asked again, of the same state.
client::DeleteOptions SameDeletion(const meta::ObjectMeta& metadata) {
  client::DeleteOptions options;
  options.uid = metadata.uid;
  options.resource_version = metadata.resource_version;
  if (HasFinalizer(metadata, kForegroundFinalizer)) {
    options.propagation = client::Propagation::kForeground;
  } else if (HasFinalizer(metadata, kOrphanFinalizer)) {
    options.propagation = client::Propagation::kOrphan;
  }
  return options;
}

}  // namespace

class InUse::Follower final : public client::Sink {
 public:
  Follower(InUse& owner, rt::Loop& loop, client::Client& client, const meta::KindInfo& kind)
      : owner_(owner),
        kind_(kind),
        prefix_(std::to_string(owner.followers_.size()) + '/'),
        reflector_(loop, client, kind, *this, {.detail = client::Detail::kMetadata}) {}

  const meta::KindInfo& kind() const { return kind_; }
  client::Reflector& reflector() { return reflector_; }

 private:
  void OnListBegin() override {
    unseen_.clear();
    for (auto at = owner_.waiting_.lower_bound(prefix_);
         at != owner_.waiting_.end() && at->first.starts_with(prefix_);
         ++at) {
      unseen_.insert(at->first);
    }
  }
  void OnListed(meta::Object object) override { Put(object); }
  void OnListEnd() override {
    for (const std::string& key : std::exchange(unseen_, {})) owner_.waiting_.erase(key);
  }
  void OnEvent(client::WatchEvent event) override {
    if (event.type == client::WatchEvent::Type::kBookmark) return;
    if (event.type == client::WatchEvent::Type::kDeleted) {
      owner_.waiting_.erase(KeyOf(event.object.metadata()));
    } else {
      Put(event.object);
    }
  }

  std::string KeyOf(const meta::ObjectMeta& metadata) const {
    return prefix_ + metadata.namespace_ + '/' + metadata.name;
  }
  void Put(const meta::Object& object) {
    const std::string key = KeyOf(object.metadata());
    unseen_.erase(key);
    if (!Waits(object)) {
      if (!owner_.waiting_.empty()) owner_.waiting_.erase(key);
      return;
    }
    Waiting& waiting = owner_.waiting_[key];
    if (waiting.uid != object.metadata().uid) waiting = {.uid = object.metadata().uid};
    owner_.runner_.queue().Add(key);
  }

  InUse& owner_;
  const meta::KindInfo& kind_;
  const std::string prefix_;
  std::set<std::string> unseen_;
  client::Reflector reflector_;
};

InUse::InUse(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      events_(loop, client, scheme, "berth-in-use"),
      runner_(loop, "in-use protection", *this, kWorkers) {
  const meta::KindInfo* kinds[] = {&apis::storage::kVolumeKind,
                                   &apis::networking::kNetworkInterfaceKind,
                                   &apis::networking::kNetworkKind,
                                   &apis::k8s::kSecretKind};
  for (const meta::KindInfo* kind : kinds) {
    followers_.push_back(std::make_unique<Follower>(*this, loop, client, *kind));
  }
}

InUse::~InUse() = default;

rt::Task<Status> InUse::Run() {
  std::vector<rt::Task<Status>> tasks;
  for (const auto& follower : followers_) tasks.push_back(follower->reflector().Run());
  tasks.push_back(events_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void InUse::Report(client::HealthReport& report) const {
  runner_.Report(report);
  for (const auto& follower : followers_) report.Add(runner_.name(), follower->reflector());
  events_.Report(report);
}

Duration InUse::Pause() const {
  return std::max(kLookAgain, kPerWaiting * static_cast<int64_t>(waiting_.size()));
}

rt::Task<Result<std::optional<Duration>>> InUse::Reconcile(std::string key) {
  if (!waiting_.contains(key)) co_return std::optional<Duration>();
  const auto words = Split(key, '/');
  if (words.size() != 3) co_return Internal(Quote(key) + " is no kind, namespace and name");
  const meta::KindInfo& kind = followers_[ParseUint(words[0]).value_or(0)]->kind();
  const client::ObjectKey name{.namespace_ = std::string(words[1]), .name = std::string(words[2])};
  Result<meta::Object> object = co_await client_.Get(kind, name);
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(object.status());
  if (!Waits(*object)) co_return std::optional<Duration>();
  const client::DeleteOptions again = SameDeletion(object->metadata());
  const Status asked = co_await client_.Delete(kind, name, again);
  if (asked.Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(asked);  // a conflict is tried again
  object = co_await client_.Get(kind, name);
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(object.status());
  const auto waiting = waiting_.find(key);
  if (waiting == waiting_.end() || !Waits(*object)) co_return std::optional<Duration>();
  Tell(*object, waiting->second);
  co_return Pause();
}

void InUse::Tell(const meta::Object& object, Waiting& waiting) {
  const auto& annotations = object.metadata().annotations;
  const auto user = annotations.find(std::string(apis::core::kUsedByAnnotation));
  if (user == annotations.end()) return;
  const Time now = loop_.Now();
  if (waiting.said == user->second && now - waiting.said_at < kTellAgain) return;
  waiting.said = user->second;
  waiting.said_at = now;
  events_.Record(client::EventSubject::Of(object),
                 client::EventType::kNormal,
                 "DeletionDeferred",
                 "Deleting",
                 "it is used by " + user->second + " and goes when nobody uses it any more");
}

}  // namespace berth::controller
