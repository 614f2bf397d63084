// SPDX-License-Identifier: Apache-2.0
// A CertificateAuthority signs the certificates of the server and of its clients. It is made at the
// first start and lives in one folder:
//
//   ca.pem       key and certificate. One file, so that no crash leaves a pair that does not match.
//   ca.crt       the certificate alone, for people; written anew from ca.pem when it differs.
//   server.pem   key and certificate of the server.
//
// All files have mode 0600, the folder 0700.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pki/certificate.h"

namespace berth::pki {

inline constexpr Duration kAuthorityLifetime = Duration::Hours(24 * 3650);
inline constexpr Duration kServerLifetime = Duration::Hours(24 * 365);
inline constexpr Duration kClientLifetime = Duration::Hours(24 * 365);
// Certificates begin a little earlier than now: clients' clocks differ.
inline constexpr Duration kClockSkew = Duration::Minutes(5);

// By which names and addresses clients reach the server.
struct ServerNames {
  std::vector<std::string> dns_names;  // sorted, unique
  std::vector<std::string> addresses;  // sorted, unique
};
// localhost, 127.0.0.1, ::1, the host's name, and the listen host; `extra` holds more names or
// addresses. A wildcard listen host (0.0.0.0, ::) names nothing: pass HostAddresses() as extra.
ServerNames ServerNamesFor(std::string_view listen_host,
                           std::string_view hostname,
                           const std::vector<std::string>& extra = {});
// Addresses of this host's interfaces, without loopback and link-local ones.
std::vector<std::string> HostAddresses();

struct ClientSubject {
  std::string user;                 // at most 64 bytes
  std::vector<std::string> groups;  // each at most 64 bytes
  Duration lifetime = kClientLifetime;
};

class CertificateAuthority {
 public:
  // Takes the authority that is in the folder, or makes one there. Every refusal names the file and
  // the reason: unreadable, open to others, a key that does not match, expired, half missing.
  static Result<CertificateAuthority> LoadOrCreate(const std::string& folder, WallTime now);

  CertificateAuthority(CertificateAuthority&&) noexcept;
  CertificateAuthority& operator=(CertificateAuthority&&) noexcept;
  ~CertificateAuthority();

  // What clients need to trust the server, and the server to trust its clients.
  const std::string& certificate_pem() const { return certificate_pem_; }

  // The server's credentials from server.pem, issued anew when they are missing, damaged, of
  // another authority, for other names, or past two thirds of their life.
  Result<Credentials> ServerCredentials(const ServerNames& names, WallTime now) const;
  // New credentials; they are not kept. A certificate never outlives its authority.
  Result<Credentials> IssueClient(const ClientSubject& subject, WallTime now) const;
  // A certificate (PEM) for the key of a request. What the request says beyond its key is ignored.
  // BadRequest as RequestKeyHash.
  Result<std::string> SignRequest(std::string_view request_pem,
                                  const ClientSubject& subject,
                                  WallTime now) const;
  Result<Credentials> IssueServer(const ServerNames& names, WallTime now) const;

  // 32 bytes that follow from the authority's key and from `purpose`, the same at every start: for
  // marks that only servers of this cluster can make. Secret.
  std::string DeriveSecret(std::string_view purpose) const;

  // Whether this authority has signed the certificate.
  bool HasSigned(std::string_view certificate_pem) const;

 private:
  struct Keys;
  CertificateAuthority(std::string folder, std::unique_ptr<Keys> keys, std::string pem);

  std::string folder_;
  std::unique_ptr<Keys> keys_;
  std::string certificate_pem_;
};

}  // namespace berth::pki
