// SPDX-License-Identifier: Apache-2.0
// The CertificateSigner brings certificate requests to their end:
//
//   pending ──(a person, or the sender's right)──► approved ──► signed ──► removed after an hour
//      └────────────────────────────────────────► denied ──────────────► removed after an hour
//
// A request of a pool is approved without a person if its sender is that pool, which renews, or may
// bootstrap pools. Pending requests are removed after a day. Requests for signers of others are
// left to them, but for their removal.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apis/k8s/certificate_signing_request.h"
#include "client/cache/informer.h"
#include "client/certificates/signers.h"
#include "client/client.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "pki/certificate_authority.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class CertificateSigner final : private Reconciler {
 public:
  static constexpr Duration kKeptPending = Duration::Hours(24);
  static constexpr Duration kKeptEnded = Duration::Hours(1);

  // Whether whoever sent the request may have pools' certificates unseen.
  using MayBootstrap = std::function<bool(const apis::k8s::CertificateSigningRequestSpec& request,
                                          const client::PoolSubject& pool)>;
  // Everything outlives the controller.
  CertificateSigner(rt::Loop& loop,
                    client::Client& client,
                    const meta::Scheme& scheme,
                    const pki::CertificateAuthority& authority,
                    MayBootstrap may_bootstrap);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  // How well it keeps up.
  void Report(client::HealthReport& report) const { runner_.Report(report, requests_); }

 private:
  // Keys are names.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  // Decides on the request or signs it; whether its status has changed.
  bool Advance(apis::k8s::CertificateSigningRequest& request) const;
  bool ApprovesItself(const apis::k8s::CertificateSigningRequestSpec& spec,
                      const pki::ClientSubject& subject) const;

  rt::Loop& loop_;
  client::Client& client_;
  const meta::Scheme& scheme_;
  const pki::CertificateAuthority& authority_;
  const MayBootstrap may_bootstrap_;
  Runner runner_;
  client::Informer requests_;
};

}  // namespace berth::controller
