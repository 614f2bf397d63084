// SPDX-License-Identifier: Apache-2.0
// Certificate requests (PKCS#10): how a host asks for a certificate without showing its key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::pki {

// A new key and a request for it. The key is a secret: never log it.
struct NewRequest {
  std::string request_pem;
  std::string key_pem;
};
// ECDSA on P-256. The request names nobody: the authority writes the name.
Result<NewRequest> MakeRequest();
// A request for a key that is already there: renewal without a new key.
Result<std::string> MakeRequestFor(std::string_view key_pem);

// The SHA-256 of the request's public key (as it stands in certificates), hexadecimal. BadRequest
// for a text without exactly one request, one that its own key has not signed, and for weak keys:
// anything but P-256, P-384, Ed25519 and RSA from 2048 to 4096 bits.
Result<std::string> RequestKeyHash(std::string_view request_pem);

// Whom a request wants to be.
struct RequestedSubject {
  std::string user;                 // the common name; "" if there is not exactly one
  std::vector<std::string> groups;  // the organizations
  // Host names, addresses and the like, which no client's certificate has.
  bool has_alternative_names = false;
};
// BadRequest as RequestKeyHash, and for names that are not plain text.
Result<RequestedSubject> ReadRequestedSubject(std::string_view request_pem);

// "sha256:<64 hex digits>" of the first certificate's DER: what a join token carries, and what a
// host compares before it sends anything.
Result<std::string> CertificatePin(std::string_view certificate_pem);

}  // namespace berth::pki
