// SPDX-License-Identifier: Apache-2.0
// Making keys and certificates, for the sources of this library only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pki/internal/openssl_handles.h"

namespace berth::pki {

enum class Purpose : uint8_t { kAuthority, kServer, kClient };

struct CertificatePlan {
  Purpose purpose = Purpose::kClient;
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> addresses;
  WallTime not_before;
  WallTime not_after;
};

// ECDSA on P-256.
Result<KeyHandle> NewKey();
Result<std::string> KeyToPem(EVP_PKEY* key);
Result<KeyHandle> KeyFromPem(std::string_view pem);
Result<std::string> CertificateToPem(X509* certificate);
Result<X509Handle> CertificateFromPem(std::string_view pem);

// A certificate for the public half of `key`, signed by the issuer; a null issuer means that it
// signs itself.
Result<X509Handle> SignCertificate(const CertificatePlan& plan,
                                   EVP_PKEY* key,
                                   X509* issuer,
                                   EVP_PKEY* issuer_key);

// What OpenSSL says about the last failure of this thread, and forgets it.
Status OpensslError(std::string_view doing);

}  // namespace berth::pki
