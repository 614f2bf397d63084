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
    : deps_(std::move(deps)), cluster_(std::move(cluster)), servers_(std::move(servers)) {}

rt::Task<Result<std::string>> Enrolment::Join(net::RpcCall call, std::string request) {
  const std::string address = call.peer.address;
  if (!limiter_.MayTry(address, deps_.loop.Now())) {
    co_return Status(Reason::kTooManyRequests, "too many failed attempts to join from here")
        .WithRetryAfter(Duration::Seconds(5));
  }
  auto answer = co_await TryJoin(std::move(request), address);
  if (answer.ok() || answer.status().Is(Reason::kCancelled) ||
      answer.status().Is(Reason::kUnavailable) || answer.status().Is(Reason::kTimeout) ||
      answer.status().Is(Reason::kTooManyRequests)) {
    co_return answer;  // nothing was guessed
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
  CO_TRY_STATUS(ChooseVersion({.min = join.versions().min(), .max = join.versions().max()},
                              ProtocolVersions{}));
  Ask ask{.token = join.token(),
          .id = {},
          .host = join.host(),
          .csr_pem = join.csr_pem(),
          .key_hash = {}};
  CO_TRY(pki::JoinTokenParts parts, pki::ParseJoinToken(ask.token));
  if (!deps_.authority.HasPin(parts.ca_pin)) {
    co_return Unauthorized(
        "join token: of another cluster, or made before its authority was changed");
  }
  ask.id = parts.id;
  CO_TRY(ask.key_hash, pki::RequestKeyHash(ask.csr_pem));
  CO_TRY(pki::JoinGrant grant, co_await Redeem(ask));
  agent::JoinResponse response;
  CO_TRY(Signed made, Sign(ask.host, ask.csr_pem));
  CO_TRY_STATUS(co_await Remember(ask, grant, made.facts));
  if (deps_.on_signed) deps_.on_signed(ask.host, made.facts);
  response.set_certificate_pem(std::move(made.certificate_pem));
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

rt::Task<Status> Enrolment::Remember(Ask ask,
                                     pki::JoinGrant grant,
                                     client::HostCertificate certificate) {
  const WallTime now = deps_.loop.WallNow();
  const std::function<bool(client::RecordEntries&)> edit =
      [ask, grant, certificate, now](client::RecordEntries& entries) {
        auto record = client::ParseHostRecord(entries);
        // The same host again: an answer was lost, or it did not know the authority any more.
        if (!record.ok() || !client::KnowsKey(*record, ask.key_hash)) {
          record = client::HostRecord{.grant = grant, .keys = {ask.key_hash}, .joined = now};
        }
        record->certificate = certificate;
        entries = client::FormatHostRecord(*record);
        return true;
      };
  const auto written =
      co_await client::EditRecord(deps_.client, client::HostRecordName(ask.host), edit);
  co_return written.status();
}

Result<Enrolment::Signed> Enrolment::Sign(const std::string& host, const std::string& csr_pem) {
  if (deps_.leads && !deps_.leads()) return Unavailable("this server does not lead");
  if (!signings_.Take(host, deps_.loop.Now())) {
    return ToStatus({.reason = std::string(kLimits),
                     .message = "host " + host + " has had too many certificates lately",
                     .retry_after = signings_.pause()});
  }
  const pki::ClientSubject subject{.user = std::string(client::kHostUserPrefix) + host,
                                   .groups = {std::string(client::kHostGroup)},
                                   .lifetime = kHostCertificateLifetime};
  Signed made;
  TRY(made.certificate_pem, deps_.authority.SignRequest(csr_pem, subject, deps_.loop.WallNow()));
  TRY(const pki::Certificate certificate, pki::ParseCertificatePem(made.certificate_pem));
  made.facts = {.authority = certificate.issuer, .until = certificate.not_after};
  return made;
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
  if (!IsTrusted(deps_.authority, identity)) co_return ToStatus(RetiredAuthority(identity));
  CO_TRY(client::HostRecord record, co_await FindHost(identity.host));
  if (now > identity.not_after && !client::KnowsKey(record, identity.key_hash)) {
    co_return Unauthorized("renew: the expired certificate of host " + identity.host +
                           " is not of the key that it is known by");
  }
  CO_TRY(std::string key_hash, pki::RequestKeyHash(renew.csr_pem()));
  CO_TRY(Signed made, Sign(identity.host, renew.csr_pem()));
  const std::function<bool(client::RecordEntries&)> edit =
      [key_hash, facts = made.facts](client::RecordEntries& entries) {
        auto known = client::ParseHostRecord(entries);
        if (!known.ok()) return false;  // removed meanwhile
        client::RememberKey(*known, key_hash);
        known->certificate = facts;
        entries = client::FormatHostRecord(*known);
        return true;
      };
  CO_TRY_STATUS(
      co_await client::EditRecord(deps_.client, client::HostRecordName(identity.host), edit));
  if (deps_.on_signed) deps_.on_signed(identity.host, made.facts);
  agent::RenewResponse response;
  response.set_certificate_pem(std::move(made.certificate_pem));
  response.set_ca_pem(deps_.authority.certificate_pem());
  co_return response.SerializeAsString();
}

}  // namespace berth::gateway
