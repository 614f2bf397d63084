// SPDX-License-Identifier: Apache-2.0
// Who may do what to a CertificateSigningRequest, beyond writing it at all:
//
//   a new one    for one of our signers: it must be something that they sign (client/certificates)
//   approval     verb `approve` on the signer; nothing but the decision may change
//   status       verb `sign` on the signer; the decision may not change
//
// The signer is the resource `signers` of certificates.k8s.io, by its name or as "DOMAIN/*".
#pragma once

#include <string_view>

#include "apiserver/authz/authorizer.h"
#include "apiserver/identity.h"
#include "base/status.h"
#include "meta/object.h"

namespace berth::apiserver {

// Ok for other kinds. `before` is null for a new object.
Status CheckCertificateWrite(const Authorizer& authorizer,
                             const Identity& identity,
                             std::string_view subresource,
                             const meta::Object* before,
                             const meta::Object& after);

}  // namespace berth::apiserver
