// SPDX-License-Identifier: Apache-2.0
#include "app/leading/server_list.h"

#include <algorithm>
#include <utility>

#include "apis/k8s/lease.h"
#include "app/leading/candidacy.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/ip.h"
#include "net/url.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

using apis::k8s::kLeaseKind;
using apis::k8s::Lease;

constexpr char kGatewayAnnotation[] = "berth.dev/gateway";
constexpr char kNamesAnnotation[] = "berth.dev/names";
constexpr char kAnswersForAnnotation[] = "berth.dev/answers-for";
constexpr std::string_view kPrefix = "server-";
constexpr Duration kSayEvery = Duration::Seconds(10);
// A server that was not heard of for this long is not worth a host's time. Clocks differ.
constexpr Duration kLately = Duration::Minutes(2);
constexpr size_t kGatewaysMax = 32;
constexpr size_t kNameBytesMax = 253;

client::ObjectKey KeyOf(const std::string& id) {
  return {.namespace_ = kServerNamespace, .name = std::string(kPrefix) + id};
}

// What an annotation has, each once.
void AddParts(std::string_view text, size_t limit, std::vector<std::string>& out) {
  for (const std::string_view part : Split(text, ',')) {
    const bool is_known = std::ranges::find(out, part) != out.end();
    if (!part.empty() && !is_known && out.size() < limit) out.emplace_back(part);
  }
}

std::vector<std::string> PartsOf(const Lease& lease, const char* annotation, size_t limit) {
  std::vector<std::string> parts;
  const auto said = lease.metadata.annotations.find(annotation);
  if (said != lease.metadata.annotations.end()) AddParts(said->second, limit, parts);
  return parts;
}

bool IsName(const std::string& name) {
  if (meta::IpAddress::Parse(name).has_value()) return true;
  return name.size() <= kNameBytesMax && std::ranges::all_of(name, [](char c) {
           constexpr std::string_view kOthers = "-._*";
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || kOthers.contains(c);
         });
}

// A certificate with one that is no name could not be made at all.
void KeepNames(std::vector<std::string>& names) {
  std::erase_if(names, [](const std::string& name) { return !IsName(name); });
}

bool Has(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

std::vector<std::string> WayTo(const ServerPlace& own, const LeaderPlace& leader) {
  const auto is_answered = [&](const std::string& name) { return Has(leader.answers_for, name); };
  if (!std::ranges::all_of(own.names, is_answered)) return {};
  // A name of both leads to either: it would come back here.
  std::vector<std::string> way;
  for (const std::string& gateway : leader.place.gateways) {
    if (!Has(own.gateways, gateway)) way.push_back(gateway);
  }
  const auto first = leader.place.gateways.empty()
                         ? Result<net::HostPort>(NotFound(""))
                         : net::ParseHostPort(leader.place.gateways.front(), 0);
  if (!first.ok()) return way;
  for (const std::string& name : leader.place.names) {
    const std::string gateway = net::FormatHostPort(name, first->port);
    const bool is_address = meta::IpAddress::Parse(name).has_value();
    if (is_address && !Has(own.names, name) && !Has(way, gateway)) way.push_back(gateway);
  }
  return way;
}

ServerList::ServerList(rt::Loop& loop, client::Client& client, ServerPlace own)
    : loop_(loop), client_(client), own_(std::move(own)) {
  KeepNames(own_.names);
}

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
  lease.metadata.annotations[kNamesAnnotation] = Join(own_.names, ",");
  lease.metadata.annotations.erase(kAnswersForAnnotation);
  if (!answers_for_.empty()) {
    lease.metadata.annotations[kAnswersForAnnotation] = Join(answers_for_, ",");
  }
  lease.spec.holder_identity = own_.id;
  lease.spec.lease_duration_seconds = static_cast<int32_t>(kLately.seconds());
  lease.spec.renew_time = meta::MicroTime{loop_.WallNow()};
  const std::vector<std::string> answers_for = answers_for_;
  meta::Object object = meta::Object::Of(kLeaseKind, std::move(lease));
  const client::WriteOptions options;
  Result<meta::Object> written = Unavailable("");
  if (found.ok()) {
    written = co_await client_.Update(std::move(object), options);
  } else {
    written = co_await client_.Create(std::move(object), options);
  }
  if (written.ok()) said_answers_for_ = answers_for;
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
  for (const std::string& said : all) AddParts(said, kGatewaysMax, gateways);
  co_return gateways;
}

rt::Task<Result<std::vector<std::string>>> ServerList::Names() {
  CO_TRY(const std::vector<std::string> all, co_await Said(kNamesAnnotation));
  std::vector<std::string> names = own_.names;
  for (const std::string& said : all) AddParts(said, kServerNamesMax, names);
  KeepNames(names);
  co_return names;
}

rt::Task<Status> ServerList::AnswerFor(std::vector<std::string> names) {
  answers_for_ = std::move(names);
  if (said_answers_for_ == answers_for_) co_return OkStatus();
  co_return co_await Say();
}

rt::Task<Result<std::vector<std::string>>> ServerList::WayToLeader(std::string id) {
  CO_TRY(const meta::Object found, co_await client_.Get(kLeaseKind, KeyOf(id)));
  const Lease& lease = found.as<Lease>();
  const LeaderPlace leader{.place = {.id = id,
                                     .url = {},
                                     .gateways = PartsOf(lease, kGatewayAnnotation, kGatewaysMax),
                                     .names = PartsOf(lease, kNamesAnnotation, kServerNamesMax)},
                           .answers_for = PartsOf(lease, kAnswersForAnnotation, kServerNamesMax)};
  co_return WayTo(own_, leader);
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
