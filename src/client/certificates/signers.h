// SPDX-License-Identifier: Apache-2.0
// The signers that every cluster has, and what they sign: certificates of clients, with a name,
// groups and nothing else.
//
//   kubernetes.io/kube-apiserver-client   people and programs; pools in API mode too, since that is
//                                         whom IronCore's poollets ask
//   berth.dev/pool-client                 pools in API mode, nobody else
//
// Neither signs a name or a group that begins with "system:" or "berth:", so no request makes its
// sender an administrator or a host of a session: hosts get their certificates by joining.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apis/k8s/certificate_signing_request.h"
#include "base/result.h"
#include "meta/scheme.h"
#include "pki/certificate_authority.h"

namespace berth::client {

inline constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
inline constexpr std::string_view kPoolSigner = "berth.dev/pool-client";

bool IsOurSigner(std::string_view signer);

// A pool in API mode, as its certificate names it.
struct PoolSubject {
  // The right that lets its holder ask for such certificates unseen: create on
  // certificatesigningrequests/machinepoolclient.
  std::string subresource;
  std::string pool;
};
std::optional<PoolSubject> PoolSubjectOf(const meta::Scheme& scheme,
                                         const pki::ClientSubject& subject);

// Whom the request asks to be. BadRequest, saying what is wrong, if our signers do not sign it.
// REQUIRES: IsOurSigner(spec.signerName).
Result<pki::ClientSubject> SubjectToSign(const meta::Scheme& scheme,
                                         const apis::k8s::CertificateSigningRequestSpec& spec);

}  // namespace berth::client
