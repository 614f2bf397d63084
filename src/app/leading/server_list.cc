// SPDX-License-Identifier: Apache-2.0
#include "app/leading/server_list.h"

#include <algorithm>
#include <utility>

#include "apis/k8s/lease.h"
#include "app/leading/candidacy.h"
#include "base/log.h"
#include "base/strings.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

using apis::k8s::kLeaseKind;
using apis::k8s::Lease;

constexpr char kGatewayAnnotation[] = "berth.dev/gateway";
constexpr std::string_view kPrefix = "server-";
constexpr Duration kSayEvery = Duration::Seconds(10);
// A server that was not heard of for this long is not worth a host's time. Clocks differ.
constexpr Duration kLately = Duration::Minutes(2);
constexpr size_t kGatewaysMax = 32;

client::ObjectKey KeyOf(const std::string& id) {
  return {.namespace_ = kServerNamespace, .name = std::string(kPrefix) + id};
}

}  // namespace

ServerList::ServerList(rt::Loop& loop, client::Client& client, ServerPlace own)
    : loop_(loop), client_(client), own_(std::move(own)) {}

rt::Task<Status> ServerList::Run() {
  for (;;) {
    const Status said = co_await Say();
    if (said.Is(Reason::kCancelled)) co_return said;
    if (!said.ok()) LOG_DEBUG("server list: {}", said.message());
    CO_TRY_STATUS(co_await rt::Sleep(kSayEvery));
  }
}

rt::Task<Status> ServerList::Say() {
  const client::ObjectKey key = KeyOf(own_.id);
  Result<meta::Object> found = co_await client_.Get(kLeaseKind, key);
  if (!found.ok() && !found.status().Is(Reason::kNotFound)) co_return found.status();
  Lease lease = found.ok() ? found->as<Lease>() : Lease();
  lease.metadata.namespace_ = key.namespace_;
  lease.metadata.name = key.name;
  lease.metadata.annotations[kUrlAnnotation] = own_.url;
  lease.metadata.annotations[kGatewayAnnotation] = Join(own_.gateways, ",");
  lease.spec.holder_identity = own_.id;
  lease.spec.lease_duration_seconds = static_cast<int32_t>(kLately.seconds());
  lease.spec.renew_time = meta::MicroTime{loop_.WallNow()};
  meta::Object object = meta::Object::Of(kLeaseKind, std::move(lease));
  const client::WriteOptions options;
  Result<meta::Object> written = Unavailable("");
  if (found.ok()) {
    written = co_await client_.Update(std::move(object), options);
  } else {
    written = co_await client_.Create(std::move(object), options);
  }
  co_return written.status();
}

rt::Task<Result<std::vector<std::string>>> ServerList::Said(std::string annotation) {
  client::ListOptions which;
  which.namespace_ = kServerNamespace;
  CO_TRY(const client::ObjectList leases, co_await client_.List(kLeaseKind, std::move(which)));
  std::vector<std::string> all;
  for (const meta::Object& object : leases.items) {
    const Lease& lease = object.as<Lease>();
    const auto said = lease.metadata.annotations.find(annotation);
    if (!lease.metadata.name.starts_with(kPrefix) || !lease.spec.renew_time) continue;
    if (said == lease.metadata.annotations.end()) continue;
    if (loop_.WallNow() - lease.spec.renew_time->time > kLately) continue;
    all.push_back(said->second);
  }
  co_return all;
}

rt::Task<Result<std::vector<std::string>>> ServerList::Gateways() {
  CO_TRY(const std::vector<std::string> all, co_await Said(kGatewayAnnotation));
  std::vector<std::string> gateways = own_.gateways;
  for (const std::string& said : all) {
    for (const std::string_view gateway : Split(said, ',')) {
      const bool is_known = std::ranges::find(gateways, gateway) != gateways.end();
      if (gateway.empty() || is_known || gateways.size() >= kGatewaysMax) continue;
      gateways.emplace_back(gateway);
    }
  }
  co_return gateways;
}

rt::Task<Result<std::vector<std::string>>> ServerList::OtherUrls() {
  CO_TRY(std::vector<std::string> urls, co_await Said(kUrlAnnotation));
  std::ranges::sort(urls);
  const auto twice = std::ranges::unique(urls);
  urls.erase(twice.begin(), twice.end());
  std::erase(urls, own_.url);
  co_return urls;
}

rt::Task<Status> ServerList::Leave() {
  const client::DeleteOptions options;
  const Status deleted = co_await client_.Delete(kLeaseKind, KeyOf(own_.id), options);
  co_return deleted.Is(Reason::kNotFound) ? OkStatus() : deleted;
}

}  // namespace berth::app
