// SPDX-License-Identifier: Apache-2.0
#include "gateway/status_writer.h"

#include <utility>

#include "apis/core/well_known.h"
#include "apis/k8s/secret.h"
#include "base/log.h"
#include "gateway/rules/status_apply.h"
#include "rt/backoff.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

using apis::k8s::kSecretKind;
using apis::k8s::Secret;

// Against other writers of one object; then it waits for a while.
constexpr int kConflictsInARow = 8;

// Whether another attempt may end better.
bool IsPassing(const Status& status) {
  return status.Is(Reason::kConflict) || status.Is(Reason::kUnavailable) ||
         status.Is(Reason::kTimeout) || status.Is(Reason::kTooManyRequests);
}

meta::OwnerReference OwnerOf(const meta::Object& object) {
  meta::OwnerReference owner;
  owner.api_version = "storage.ironcore.dev/v1alpha1";
  owner.kind = object.kind().kind;
  owner.name = object.metadata().name;
  owner.uid = object.metadata().uid;
  owner.controller = true;
  return owner;
}

bool IsOwnedBy(const Secret& secret, const std::string& uid) {
  for (const auto& owner : secret.metadata.owner_references) {
    if (owner.uid == uid) return true;
  }
  return false;
}

}  // namespace

void StatusWriter::Report(const meta::KindInfo& kind,
                          const client::ObjectKey& key,
                          const std::string& pool_uid,
                          agent::ObjectStatus report) {
  const std::string uid = report.uid();
  waiting_[uid] = Waiting{&kind, key, pool_uid, std::move(report)};
  StartMore();
}

void StatusWriter::StartMore() {
  for (auto at = waiting_.begin(); at != waiting_.end() && in_flight_.size() < kInFlightMax;) {
    if (in_flight_.contains(at->first)) {
      ++at;
      continue;
    }
    in_flight_.insert(at->first);
    Waiting item = std::move(at->second);
    at = waiting_.erase(at);
    scope_.Spawn("gateway.status", WriteOne(std::move(item)));
  }
}

rt::Task<Status> StatusWriter::WriteOne(Waiting item) {
  const std::string uid = item.report.uid();
  const Status status = co_await TryWrite(std::move(item));
  in_flight_.erase(uid);
  if (status.Is(Reason::kCancelled)) co_return status;
  if (!status.ok()) LOG_WARNING("status of {}: {}", uid, status.ToString());
  StartMore();
  co_return OkStatus();
}

// Until it is written or means nothing any more: the host will not say it again.
rt::Task<Status> StatusWriter::TryWrite(Waiting item) {
  const std::string uid = item.report.uid();
  rt::Backoff backoff;
  // A newer report says all that this one does.
  for (int attempt = 1; !waiting_.contains(uid); ++attempt) {
    auto object = co_await client_.Get(*item.kind, item.key);
    if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
    Status last = object.status();
    if (object.ok()) {
      if (object->metadata().uid != uid || !MayReport(*object,
                                                      item.pool_uid,
                                                      item.report.placement(),
                                                      item.report.incarnation(),
                                                      incarnation_)) {
        ++refused_;
        co_return OkStatus();
      }
      if (!ApplyReport(item.report, loop_.WallNow(), *object)) co_return OkStatus();
      if (!AccessSecretData(item.report).empty()) last = co_await KeepSecret(item, *object);
    }
    if (last.ok()) {
      const client::WriteOptions options{.subresource = client::Subresource::kStatus};
      const auto written = co_await client_.Update(*std::move(object), options);
      last = written.status();
      if (last.ok()) {
        ++written_;
        co_return OkStatus();
      }
    }
    if (last.Is(Reason::kConflict) && attempt % kConflictsInARow != 0) continue;
    if (!IsPassing(last)) co_return last;
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
  co_return OkStatus();
}

rt::Task<Status> StatusWriter::KeepSecret(Waiting item, meta::Object owner) {
  const std::string uid = owner.metadata().uid;
  const client::ObjectKey key{.namespace_ = item.key.namespace_, .name = AccessSecretName(uid)};
  std::map<std::string, meta::Base64> data;
  for (const auto& [name, value] : AccessSecretData(item.report)) data[name].bytes = value;
  auto found = co_await client_.Get(kSecretKind, key);
  if (!found.ok() && !found.status().Is(Reason::kNotFound)) co_return found.status();
  const client::WriteOptions options;
  if (!found.ok()) {
    Secret secret;
    secret.metadata.namespace_ = key.namespace_;
    secret.metadata.name = key.name;
    secret.metadata.owner_references.push_back(OwnerOf(owner));
    secret.type = apis::core::kVolumeAuthSecretType;
    secret.data = std::move(data);
    meta::Object object = meta::Object::Of(kSecretKind, std::move(secret));
    const auto made = co_await client_.Create(std::move(object), options);
    co_return made.status();
  }
  auto& secret = found->as<Secret>();
  if (!IsOwnedBy(secret, uid)) {
    co_return Forbidden("secret " + key.namespace_ + "/" + key.name +
                        " is not the server's own: it is left as it is");
  }
  if (secret.data == data) co_return OkStatus();
  secret.data = std::move(data);
  const auto written = co_await client_.Update(*std::move(found), options);
  co_return written.status();
}

}  // namespace berth::gateway
