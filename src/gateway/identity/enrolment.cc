// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/enrolment.h"

#include <map>
#include <optional>
#include <utility>

#include "apis/k8s/namespace.h"
#include "apis/k8s/secret.h"
#include "base/log.h"
#include "base/strings.h"
#include "berth/agent/v1/agent.pb.h"
#include "gateway/identity/host_identity.h"
#include "gateway/identity/join_rules.h"
#include "gateway/identity/protocol_version.h"
#include "pki/certificate_request.h"

namespace berth::gateway {
namespace {

namespace agent = berth::agent::v1;
using apis::k8s::kSecretKind;
using apis::k8s::Secret;

constexpr int kAttemptsMax = 5;  // against others who write the same token or host at once
constexpr size_t kRequestBytesMax = 64 * 1024;

std::map<std::string, std::string> PlainData(const Secret& secret) {
  std::map<std::string, std::string> data;
  for (const auto& [name, value] : secret.data) data[name] = value.bytes;
  return data;
}

client::EventSubject SystemNamespace() {
  return {.kind = &apis::k8s::kNamespaceKind,
          .key = {.namespace_ = "", .name = std::string(client::kRecordNamespace)},
          .uid = ""};
}

}  // namespace

struct Enrolment::Ask {
  std::string token;
  std::string id;
  std::string host;
  std::string csr_pem;
  std::string key_hash;

  JoinAttempt attempt(uint64_t incarnation, WallTime now) const {
    return {
        .token = token, .host = host, .key_hash = key_hash, .incarnation = incarnation, .now = now};
  }
};

Enrolment::Enrolment(Deps deps, client::ClusterIdentity cluster, std::vector<std::string> servers)
    : deps_(deps), cluster_(std::move(cluster)), servers_(std::move(servers)) {
  const auto pin = pki::CertificatePin(deps.authority.certificate_pem());
  CHECK(pin.ok()) << pin.status();
  ca_pin_ = *pin;
}

rt::Task<Result<std::string>> Enrolment::Join(net::RpcCall call, std::string request) {
  const std::string address = call.peer.address;
  if (!limiter_.MayTry(address, deps_.loop.Now())) {
    co_return Status(Reason::kTooManyRequests, "too many failed attempts to join from here")
        .WithRetryAfter(Duration::Seconds(5));
  }
  auto answer = co_await TryJoin(std::move(request), address);
  if (answer.ok() || answer.status().Is(Reason::kCancelled) ||
      answer.status().Is(Reason::kUnavailable) || answer.status().Is(Reason::kTimeout)) {
    co_return answer;
  }
  limiter_.CountFailure(address, deps_.loop.Now());
  LOG_WARNING("join from {} refused: {}", address, answer.status().message());
  deps_.events.Record(
      SystemNamespace(),
      client::EventType::kWarning,
      "JoinRefused",
      "Join",
      "a host at " + address + " was refused: " + std::string(answer.status().message()));
  co_return answer;
}

rt::Task<Result<std::string>> Enrolment::TryJoin(std::string request, std::string address) {
  agent::JoinRequest join;
  if (request.size() > kRequestBytesMax || !join.ParseFromString(request)) {
    co_return BadRequest("join: not a JoinRequest");
  }
  CO_TRY_STATUS(ChooseVersion(join.versions().min(), join.versions().max()));
  Ask ask{.token = join.token(),
          .id = {},
          .host = join.host(),
          .csr_pem = join.csr_pem(),
          .key_hash = {}};
  CO_TRY(pki::JoinTokenParts parts, pki::ParseJoinToken(ask.token));
  if (parts.ca_pin != ca_pin_) co_return Unauthorized("join token: of another cluster");
  ask.id = parts.id;
  CO_TRY(ask.key_hash, pki::RequestKeyHash(ask.csr_pem));
  CO_TRY(pki::JoinGrant grant, co_await Redeem(ask));
  CO_TRY_STATUS(co_await Remember(ask, grant));
  agent::JoinResponse response;
  CO_TRY(*response.mutable_certificate_pem(), Sign(ask.host, ask.csr_pem));
  response.set_ca_pem(deps_.authority.certificate_pem());
  response.set_host(ask.host);
  response.set_cluster_id(cluster_.id);
  for (const std::string& server : servers_) response.add_servers(server);
  LOG_INFO("host {} joined from {}", ask.host, address);
  co_return response.SerializeAsString();
}

// Single use is a write on the state read: of two who come at once with different keys one loses.
rt::Task<Result<pki::JoinGrant>> Enrolment::Redeem(Ask ask) {
  const client::ObjectKey key{.namespace_ = std::string(pki::kTokenNamespace),
                              .name = std::string(pki::kJoinTokenNamePrefix) + ask.id};
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto object = co_await deps_.client.Get(kSecretKind, key);
    if (object.status().Is(Reason::kNotFound)) co_return Unauthorized("join token: unknown");
    if (!object.ok()) co_return object.status();
    auto& secret = object->as<Secret>();
    if (secret.type != pki::kJoinTokenSecretType) co_return Unauthorized("join token: unknown");
    std::map<std::string, std::string> data = PlainData(secret);
    CO_TRY(pki::JoinRecord record, pki::ParseJoinSecret(key.name, data));
    const JoinAttempt facts = ask.attempt(cluster_.incarnation, deps_.loop.WallNow());
    CO_TRY_STATUS(CheckToken(record, facts));
    CO_TRY(std::optional<client::RecordEntries> entries,
           co_await client::ReadRecord(deps_.client, client::HostRecordName(ask.host)));
    std::optional<client::HostRecord> known;
    if (entries) {
      CO_TRY(known, client::ParseHostRecord(*entries));
    }
    CO_TRY_STATUS(CheckName(known, record, facts));
    if (!record.redeemed_key.empty()) co_return record.grant;  // the same host, again
    pki::MarkRedeemed(data, ask.key_hash, ask.host);
    for (auto& [name, value] : data) secret.data[name].bytes = value;
    const client::WriteOptions options;
    const auto written = co_await deps_.client.Update(*std::move(object), options);
    if (written.ok()) co_return record.grant;
    if (!written.status().Is(Reason::kConflict)) co_return written.status();
  }
  co_return Unavailable("join token: too many use it at once");
}

rt::Task<Status> Enrolment::Remember(Ask ask, pki::JoinGrant grant) {
  const WallTime now = deps_.loop.WallNow();
  const std::function<bool(client::RecordEntries&)> edit =
      [ask, grant, now](client::RecordEntries& entries) {
        const auto known = client::ParseHostRecord(entries);
        // The same host again: an answer was lost.
        if (known.ok() && client::KnowsKey(*known, ask.key_hash)) return false;
        const client::HostRecord fresh{.grant = grant, .keys = {ask.key_hash}, .joined = now};
        entries = client::FormatHostRecord(fresh);
        return true;
      };
  const auto written =
      co_await client::EditRecord(deps_.client, client::HostRecordName(ask.host), edit);
  co_return written.status();
}

Result<std::string> Enrolment::Sign(const std::string& host, const std::string& csr_pem) const {
  if (deps_.leads && !deps_.leads()) return Unavailable("this server does not lead");
  const pki::ClientSubject subject{.user = std::string(client::kHostUserPrefix) + host,
                                   .groups = {std::string(client::kHostGroup)},
                                   .lifetime = kHostCertificateLifetime};
  return deps_.authority.SignRequest(csr_pem, subject, deps_.loop.WallNow());
}

rt::Task<Result<client::HostRecord>> Enrolment::FindHost(std::string host) {
  CO_TRY(std::optional<client::RecordEntries> entries,
         co_await client::ReadRecord(deps_.client, client::HostRecordName(host)));
  if (!entries) co_return Unauthorized("host " + host + " was removed: join again");
  co_return client::ParseHostRecord(*entries);
}

rt::Task<Result<std::string>> Enrolment::Renew(net::RpcCall call, std::string request) {
  agent::RenewRequest renew;
  if (request.size() > kRequestBytesMax || !renew.ParseFromString(request)) {
    co_return BadRequest("renew: not a RenewRequest");
  }
  const WallTime now = deps_.loop.WallNow();
  const IdentityVerdict verdict =
      ReadIdentity(call.peer.certificate_der, Purpose::kRenewal, deps_.revocations, now);
  if (!verdict.identity) co_return ToStatus(verdict.refusal);
  const HostIdentity identity = *verdict.identity;
  CO_TRY(client::HostRecord record, co_await FindHost(identity.host));
  if (now > identity.not_after && !client::KnowsKey(record, identity.key_hash)) {
    co_return Unauthorized("renew: the expired certificate of host " + identity.host +
                           " is not of the key that it is known by");
  }
  CO_TRY(std::string key_hash, pki::RequestKeyHash(renew.csr_pem()));
  if (record.keys.empty() || record.keys.front() != key_hash) {
    const std::function<bool(client::RecordEntries&)> edit =
        [key_hash](client::RecordEntries& entries) {
          auto known = client::ParseHostRecord(entries);
          if (!known.ok()) return false;  // removed meanwhile
          client::RememberKey(*known, key_hash);
          entries = client::FormatHostRecord(*known);
          return true;
        };
    CO_TRY_STATUS(
        co_await client::EditRecord(deps_.client, client::HostRecordName(identity.host), edit));
  }
  agent::RenewResponse response;
  CO_TRY(*response.mutable_certificate_pem(), Sign(identity.host, renew.csr_pem()));
  response.set_ca_pem(deps_.authority.certificate_pem());
  co_return response.SerializeAsString();
}

}  // namespace berth::gateway
