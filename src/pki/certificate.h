// SPDX-License-Identifier: Apache-2.0
// What certificates say. Parsing does not verify: that is TLS's work, or the authority's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::pki {

// A certificate and the key that belongs to it, both PEM. The key is a secret: never log it.
struct Credentials {
  std::string certificate_pem;
  std::string key_pem;
};

struct Certificate {
  std::string common_name;
  std::string issuer;                      // the common name of who signed it
  std::vector<std::string> organizations;  // in the certificate's order
  std::vector<std::string> dns_names;      // sorted
  std::vector<std::string> addresses;      // sorted, "127.0.0.1", "::1"
  WallTime not_before;
  WallTime not_after;
  std::string serial;    // hexadecimal, lower case
  std::string key_hash;  // hexadecimal SHA-256 of the public key, as RequestKeyHash gives it
  bool is_authority = false;
  bool for_servers = false;  // extended key usage serverAuth
  bool for_clients = false;  // extended key usage clientAuth
};

// BadRequest for anything but one whole DER certificate with at most one common name and no NUL in
// its names.
Result<Certificate> ParseCertificate(std::string_view der);
// The first certificate of a PEM text.
Result<Certificate> ParseCertificatePem(std::string_view pem);

// Whom a client certificate stands for, as Kubernetes reads it: the common name is the user, every
// organization is a group.
struct ClientCertificate {
  std::string user;
  std::vector<std::string> groups;
  WallTime not_before;
  WallTime not_after;
  std::string serial;
  std::string issuer;
};
// BadRequest also for a certificate that is not meant for clients or names nobody.
Result<ClientCertificate> ParseClientCertificate(std::string_view der);

}  // namespace berth::pki
