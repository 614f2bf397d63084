// SPDX-License-Identifier: Apache-2.0
// Enrolment gives hosts their identities: Join turns a token and a certificate request into a
// certificate, Renew turns a certificate into the next one.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "client/cluster.h"
#include "client/events/event_recorder.h"
#include "client/records/host_record.h"
#include "client/records/revocations.h"
#include "gateway/identity/attempt_limiter.h"
#include "gateway/identity/host_limiter.h"
#include "net/rpc.h"
#include "pki/certificate_authority.h"
#include "pki/join_token.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::gateway {

class Enrolment {
 public:
  // Certificates of one host: each is a signature and a commit. A host needs two a day, and a few
  // more while the authority is changed. The worst one is 360 commits an hour.
  static constexpr double kCertificatesBurst = 10;
  static constexpr double kCertificatesPerSecond = 0.1;

  // Everything outlives the enrolment.
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    const pki::CertificateAuthority& authority;
    client::EventRecorder& events;
    const client::Revocations& revocations;
    std::function<bool()> leads = {};  // empty: always. Who does not lead signs nothing.
    // Hosts' certificates, once the record of the host says so too.
    std::function<void(const std::string& host, const client::HostCertificate&)> on_signed = {};
  };
  Enrolment(Deps deps, client::ClusterIdentity cluster, std::vector<std::string> servers);
  // What those who join are told from now on.
  void SetServers(std::vector<std::string> servers) { servers_ = std::move(servers); }
  // Addresses of the other servers, which pass on the connections of many hosts.
  void SetServerAddresses(const std::vector<std::string>& addresses) {
    limiter_.SetServers(addresses);
  }

  // Handlers of AgentService. Idempotent for one token and one key. TooManyRequests once the host
  // has had all the certificates that it may have at the moment.
  rt::Task<Result<std::string>> Join(net::RpcCall call, std::string request);
  rt::Task<Result<std::string>> Renew(net::RpcCall call, std::string request);

  // What the host's token granted; Unauthorized if the host is not known (any more).
  rt::Task<Result<client::HostRecord>> FindHost(std::string host);

 private:
  struct Ask;
  struct Signed {
    std::string certificate_pem;
    client::HostCertificate facts;
  };
  rt::Task<Result<std::string>> TryJoin(std::string request, std::string address);
  rt::Task<Result<pki::JoinGrant>> Redeem(Ask ask);
  rt::Task<Status> Remember(Ask ask, pki::JoinGrant grant, client::HostCertificate certificate);
  Result<Signed> Sign(const std::string& host, const std::string& csr_pem);

  Deps deps_;
  const client::ClusterIdentity cluster_;
  std::vector<std::string> servers_;
  AttemptLimiter limiter_;
  HostLimiter signings_{kCertificatesBurst, kCertificatesPerSecond};
};

}  // namespace berth::gateway
