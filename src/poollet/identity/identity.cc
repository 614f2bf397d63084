// SPDX-License-Identifier: Apache-2.0
#include "poollet/identity/identity.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "berth/agent/v1/agent.pb.h"
#include "berth/poollet/v1/record.pb.h"
#include "net/tls.h"
#include "pki/certificate.h"
#include "pki/certificate_request.h"
#include "pki/join_token.h"
#include "pki/pem.h"
#include "rt/deadline.h"

namespace berth::poollet {
namespace {

constexpr std::string_view kJoin = "/berth.agent.v1.AgentService/Join";
constexpr std::string_view kRenew = "/berth.agent.v1.AgentService/Renew";
constexpr Duration kLookEvery = Duration::Minutes(5);
// Between renewals that the server wishes, whatever it says.
constexpr Duration kWishPause = Duration::Seconds(10);

// Whether the pin is of one of these certificates.
bool HasPin(std::string_view bundle_pem, std::string_view pin) {
  const auto blocks = pki::PemDecode(pki::kPemCertificate, bundle_pem);
  if (!blocks.ok()) return false;
  return std::ranges::any_of(*blocks, [pin](const std::string& der) {
    const auto own = pki::CertificatePin(pki::PemEncode(pki::kPemCertificate, der));
    return own.ok() && *own == pin;
  });
}

}  // namespace

Identity::Identity(rt::Loop& loop, Disk& disk, net::RpcDialer& dialer, IdentityOptions options)
    : loop_(loop), disk_(disk), dialer_(dialer), options_(std::move(options)), scope_(loop) {}

rt::Task<Result<std::unique_ptr<Identity>>> Identity::Open(rt::Loop& loop,
                                                           Disk& disk,
                                                           net::RpcDialer& dialer,
                                                           IdentityOptions options) {
  std::unique_ptr<Identity> identity(new Identity(loop, disk, dialer, std::move(options)));
  CO_TRY_STATUS(co_await identity->Load());
  if (identity->stored_.certificate_pem.empty()) CO_TRY_STATUS(co_await identity->Join());
  co_return identity;
}

rt::Task<Status> Identity::Load() {
  std::string name(kIdentityFile);
  const auto bytes = co_await disk_.Read(std::move(name));
  if (bytes.status().Is(Reason::kNotFound)) co_return OkStatus();
  if (!bytes.ok()) co_return bytes.status();
  v1::Identity message;
  if (!message.ParseFromString(*bytes)) {
    co_return Status(Reason::kInvalid,
                     "file identity: damaged; remove it and join with a new token");
  }
  stored_.host = message.host();
  stored_.cluster_id = message.cluster_id();
  stored_.ca_pem = message.ca_pem();
  stored_.certificate_pem = message.certificate_pem();
  stored_.key_pem = message.key_pem();
  stored_.pending_key_pem = message.pending_key_pem();
  stored_.servers.assign(message.servers().begin(), message.servers().end());
  if (stored_.certificate_pem.empty()) co_return OkStatus();
  if (!options_.host.empty() && stored_.host != options_.host) {
    co_return BadRequest(
        fmt::format("this host joined as {}, not as {}: use that name or another "
                    "data folder",
                    stored_.host,
                    options_.host));
  }
  std::string certificate = stored_.certificate_pem;
  std::string ca = stored_.ca_pem;
  co_return Adopt(std::move(certificate), std::move(ca));
}

rt::Task<Status> Identity::Save() {
  v1::Identity message;
  message.set_host(stored_.host);
  message.set_cluster_id(stored_.cluster_id);
  message.set_ca_pem(stored_.ca_pem);
  message.set_certificate_pem(stored_.certificate_pem);
  message.set_key_pem(stored_.key_pem);
  message.set_pending_key_pem(stored_.pending_key_pem);
  for (const auto& server : stored_.servers) message.add_servers(server);
  std::string name(kIdentityFile);
  co_return co_await disk_.Replace(std::move(name), message.SerializeAsString());
}

// Notes when the certificate wants to be renewed.
Status Identity::Adopt(std::string certificate_pem, std::string ca_pem) {
  TRY(const pki::Certificate certificate, pki::ParseCertificatePem(certificate_pem));
  expires_ = certificate.not_after;
  renew_at_ = certificate.not_before + (certificate.not_after - certificate.not_before) / 2;
  stored_.certificate_pem = std::move(certificate_pem);
  stored_.ca_pem = std::move(ca_pem);
  return OkStatus();
}

std::vector<std::string> Identity::Servers() const {
  std::vector<std::string> servers = options_.servers;
  for (const auto& server : stored_.servers) {
    if (std::ranges::find(servers, server) == servers.end()) servers.push_back(server);
  }
  return servers;
}

// The key is durable before anybody sees a request for it: a crash on the way asks again with it.
rt::Task<Result<std::string>> Identity::MakeRequest() {
  if (!stored_.pending_key_pem.empty()) {
    auto again = pki::MakeRequestFor(stored_.pending_key_pem);
    if (again.ok()) co_return again;
  }
  CO_TRY(pki::NewRequest made, pki::MakeRequest());
  stored_.pending_key_pem = std::move(made.key_pem);
  CO_TRY_STATUS(co_await Save());
  co_return std::move(made.request_pem);
}

rt::Task<Status> Identity::Join() {
  if (options_.token.empty()) {
    co_return Unauthorized(
        "this host has not joined a cluster: give it a token (berth pool join-token)");
  }
  CO_TRY(const pki::JoinTokenParts parts, pki::ParseJoinToken(options_.token));
  CO_TRY(std::string request, co_await MakeRequest());
  Status last = Unavailable("no server is named");
  for (const std::string& server : Servers()) {
    last = co_await JoinAt(server, request, parts.ca_pin);
    if (last.ok() || !(last.Is(Reason::kUnavailable) || last.Is(Reason::kTimeout))) break;
  }
  co_return last;
}

rt::Task<Status> Identity::JoinAt(std::string server, std::string request_pem, std::string pin) {
  net::RpcCredentials credentials;
  credentials.ca_pin = pin;  // checked in the handshake, before the token is sent
  auto dialled = co_await dialer_.Dial(server, std::move(credentials), options_.call_limit);
  if (!dialled.ok()) co_return dialled.status().Wrap("join " + server);
  std::unique_ptr<net::RpcChannel> channel = *std::move(dialled);
  agent::v1::JoinRequest request;
  request.set_token(options_.token);
  request.set_csr_pem(request_pem);
  request.set_host(options_.host);
  request.mutable_versions()->set_min(kProtocolMin);
  request.mutable_versions()->set_max(kProtocolMax);
  net::RpcOptions call;
  call.deadline = options_.call_limit;
  std::string method(kJoin);
  const auto answered =
      co_await channel->Call(std::move(method), request.SerializeAsString(), std::move(call));
  const Status closed = co_await channel->Close();
  if (!closed.ok()) LOG_DEBUG("join: {}", closed.message());
  if (!answered.ok()) co_return answered.status().Wrap("join " + server);
  agent::v1::JoinResponse response;
  if (!response.ParseFromString(*answered)) co_return BadRequest("join: not a JoinResponse");
  if (!HasPin(response.ca_pem(), pin)) {
    co_return Unauthorized("join: the server's authority is not the one that the token names");
  }
  CO_TRY_STATUS(Adopt(response.certificate_pem(), response.ca_pem()));
  stored_.host = response.host();
  stored_.cluster_id = response.cluster_id();
  stored_.servers.assign(response.servers().begin(), response.servers().end());
  if (!stored_.pending_key_pem.empty()) {
    stored_.key_pem = std::exchange(stored_.pending_key_pem, {});
  }
  LOG_INFO("joined as host {} of cluster {}", stored_.host, stored_.cluster_id);
  co_return co_await Save();
}

net::RpcCredentials Identity::Credentials() const {
  net::RpcCredentials credentials;
  credentials.ca_pem = stored_.ca_pem;
  credentials.certificate_pem = stored_.certificate_pem;
  credentials.key_pem = stored_.key_pem;
  return credentials;
}

rt::Task<Result<std::string>> Identity::CallAny(std::string method,
                                                std::string request,
                                                net::RpcCredentials credentials) {
  Status last = Unavailable("no server is known");
  for (const std::string& server : Servers()) {
    auto dialled = co_await dialer_.Dial(server, credentials, options_.call_limit);
    if (!dialled.ok()) {
      last = dialled.status();
      continue;
    }
    std::unique_ptr<net::RpcChannel> channel = *std::move(dialled);
    net::RpcOptions call;
    call.deadline = options_.call_limit;
    auto answered = co_await channel->Call(method, request, std::move(call));
    const Status closed = co_await channel->Close();
    if (!closed.ok()) LOG_DEBUG("{}: {}", method, closed.message());
    if (answered.ok()) co_return *std::move(answered);
    last = answered.status();
  }
  co_return last;
}

rt::Task<Status> Identity::Renew() {
  CO_TRY(std::string csr, co_await MakeRequest());
  agent::v1::RenewRequest request;
  request.set_csr_pem(std::move(csr));
  std::string method(kRenew);
  CO_TRY(const std::string answer,
         co_await CallAny(std::move(method), request.SerializeAsString(), Credentials()));
  agent::v1::RenewResponse response;
  if (!response.ParseFromString(answer)) co_return BadRequest("renew: not a RenewResponse");
  CO_TRY_STATUS(Adopt(response.certificate_pem(), response.ca_pem()));
  stored_.key_pem = std::exchange(stored_.pending_key_pem, {});
  LOG_INFO("certificate renewed until {}", FormatRfc3339(expires_));
  co_return co_await Save();
}

rt::Task<Status> Identity::RenewIfDue() {
  const bool is_due = wanted_soon_ || (loop_.WallNow() >= renew_at_ && loop_.Now() >= retry_at_);
  if (!is_due || renewing_) co_return OkStatus();
  renewing_ = true;
  const Status renewed = co_await Renew();
  renewing_ = false;
  wanted_soon_ = false;
  if (renewed.ok() || renewed.Is(Reason::kCancelled)) co_return renewed;
  const Status why = net::IsTrustFailure(renewed) ? Rejected(renewed) : renewed;
  LOG_WARNING("certificate until {}: {}", FormatRfc3339(expires_), why.message());
  // One that has expired is good for nothing but the next attempt.
  if (loop_.WallNow() >= expires_) co_return why.Wrap("renew the certificate");
  retry_at_ = loop_.Now() + options_.retry;
  co_return OkStatus();
}

// The server shows an authority that this host has never heard of. Either it is another cluster's,
// or the cluster's was changed while the host was away; only a token can tell.
rt::Task<Status> Identity::JoinAgain() {
  is_stranger_ = false;  // the next attempt shows
  CO_TRY(const pki::JoinTokenParts parts, pki::ParseJoinToken(options_.token));
  stored_.pending_key_pem.clear();
  CO_TRY(const std::string request, pki::MakeRequestFor(stored_.key_pem));
  Status last = Unavailable("no server is known");
  for (const std::string& server : Servers()) {
    last = co_await JoinAt(server, request, parts.ca_pin);
    if (last.ok() || !(last.Is(Reason::kUnavailable) || last.Is(Reason::kTimeout))) break;
  }
  co_return last;
}

rt::Task<Result<net::RpcCredentials>> Identity::Current() {
  if (is_stranger_) CO_TRY_STATUS(co_await JoinAgain());
  CO_TRY_STATUS(co_await RenewIfDue());
  co_return Credentials();
}

Status Identity::Rejected(const Status& why) {
  retry_at_ = Time();
  if (!net::IsTrustFailure(why)) {
    LOG_WARNING("the server does not accept this host's certificate: {}", why.message());
    return why;
  }
  const auto parts = pki::ParseJoinToken(options_.token);
  is_stranger_ = parts.ok() && !HasPin(stored_.ca_pem, parts->ca_pin);
  return Unauthorized(
      std::string(why.message()) +
      ": if the cluster's authority was changed (berth ca) while this host was away, "
      "start the poollet with a new token (berth pool join-token); what runs here "
      "stays");
}

void Identity::RenewSoon() {
  if (loop_.Now() < wanted_from_) return;
  wanted_from_ = loop_.Now() + kWishPause;
  wanted_soon_ = true;
  wake_.Set();
}

void Identity::Start() { scope_.Spawn("poollet.identity", RenewLoop()); }

rt::Task<Status> Identity::RenewLoop() {
  while (true) {
    const Status woken = co_await rt::WithDeadline(wake_.Wait(), kLookEvery);
    if (woken.Is(Reason::kCancelled)) co_return woken;
    wake_.Reset();
    const auto current = co_await Current();
    if (current.status().Is(Reason::kCancelled)) co_return current.status();
  }
}

rt::Task<Status> Identity::Close() { co_return co_await scope_.Close(); }

}  // namespace berth::poollet
