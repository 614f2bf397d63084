// SPDX-License-Identifier: Apache-2.0
#include "gateway/status_writer.h"

#include <utility>

#include "apis/core/well_known.h"
#include "apis/k8s/secret.h"
#include "base/log.h"
#include "gateway/rules/status_apply.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

using apis::k8s::kSecretKind;
using apis::k8s::Secret;

constexpr int kAttemptsMax = 8;  // against other writers of one object
constexpr Duration kPause = Duration::Millis(200);

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

rt::Task<Status> StatusWriter::TryWrite(Waiting item) {
  const std::string uid = item.report.uid();
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    // A newer report has come: it says all that this one does.
    if (waiting_.contains(uid)) co_return OkStatus();
    auto object = co_await client_.Get(*item.kind, item.key);
    if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
    last = object.status();
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
      if (!AccessSecretData(item.report).empty()) CO_TRY_STATUS(co_await KeepSecret(item, *object));
      const client::WriteOptions options{.subresource = client::Subresource::kStatus};
      auto written = co_await client_.Update(*std::move(object), options);
      if (written.ok()) {
        ++written_;
        co_return OkStatus();
      }
      last = written.status();
      if (last.Is(Reason::kConflict)) continue;
    }
    if (!last.Is(Reason::kUnavailable) && !last.Is(Reason::kTimeout) &&
        !last.Is(Reason::kTooManyRequests)) {
      co_return last;
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPause));
  }
  co_return last;
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
