// SPDX-License-Identifier: Apache-2.0
// A CertificateAuthority signs the certificates of the server and of its clients. It is made at the
// first start and lives in one folder:
//
//   ca.pem       key and certificate. One file, so that no crash leaves a pair that does not match.
//   ca.crt       the certificate alone, for people; written anew from ca.pem when it differs.
//   server.pem   key and certificate of the server.
//
// All files have mode 0600, the folder 0700.
//
// It can be changed for another one (docs/adr/0031) while everything goes on. In between there are
// two, and certificates of both are good:
//
//   Rotated ──► clients' certificates come from the next one; the server's own from the last one,
//   until
//               hosts and people have learnt the next one ──► Switched ──► Retired: the last one is
//               void
#pragma once

#include <compare>
#include <memory>
#include <optional>
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

// Of users and groups in certificates. X.520 says 64, but a pool that speaks the API is called
// compute.DOMAIN:system:machinepool:NAME, with a name of up to 253.
inline constexpr size_t kNamePartBytesMax = 512;

struct ClientSubject {
  std::string user;                 // at most kNamePartBytesMax
  std::vector<std::string> groups;  // each at most that
  Duration lifetime = kClientLifetime;
};

// A change of the authority that is under way.
struct Rotation {
  std::string id;
  WallTime signs_from;    // of clients' certificates, by the next one: all servers know it by then
  WallTime switch_after;  // the server's own certificate is of the next one, but not before
};

// What to do where there is none yet. A new one is trusted by nobody: whoever knows that there is
// one, in a folder that should be mounted, rather has no server.
enum class NoAuthority { kMakesOne, kIsRefused };

class CertificateAuthority {
 public:
  // Takes the authority that is in the folder, or makes one there. Every refusal names the file and
  // the reason: unreadable, open to others, a key that does not match, expired, half missing,
  // NotFound if it is missing and none may be made.
  static Result<CertificateAuthority> LoadOrCreate(const std::string& folder,
                                                   WallTime now,
                                                   NoAuthority none = NoAuthority::kMakesOne);

  CertificateAuthority(CertificateAuthority&&) noexcept;
  CertificateAuthority& operator=(CertificateAuthority&&) noexcept;
  ~CertificateAuthority();

  // What clients need to trust the server, and the server to trust its clients: one certificate, or
  // two while the authority is changed. The first has signed the server's.
  const std::string& certificate_pem() const { return certificate_pem_; }
  // Common names of those, in that order.
  const std::vector<std::string>& names() const { return names_; }
  // Which of them signs clients' certificates now.
  const std::string& SigningName(WallTime now) const;
  // "sha256:<hex>" of each, as CertificatePin gives it.
  bool HasPin(std::string_view pin) const;

  // While it is changed and the server's certificate is not yet of the next one; null else.
  const Rotation* rotation() const;
  // Two certificates are trusted, and the server's is of the next one already.
  bool is_switched() const;
  // Of the last change; "" if there was none.
  const std::string& last_change() const;
  // When the first or second one ends.
  WallTime not_after(size_t member) const;

  // The steps of a change: each gives the text of ca.pem as it is to be. Conflict if it is not this
  // step's turn.
  Result<std::string> Rotated(Rotation rotation, WallTime now) const;
  Result<std::string> Switched() const;
  Result<std::string> Retired(std::string id) const;
  // Takes such a text over, here and in the folder. BadRequest for what is not an authority.
  Status Replace(const std::string& text, WallTime now);
  const std::string& text() const { return text_; }
  // Which of two texts has more such steps behind it; nullopt if they are of different clusters:
  // what is derived from them differs.
  static std::optional<std::strong_ordering> Compare(std::string_view text, std::string_view other);

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

  // 32 bytes that follow from the key of the cluster's first authority and from `purpose`, the same
  // at every start and after every change: for marks that only servers of this cluster can make.
  // Secret.
  std::string DeriveSecret(std::string_view purpose) const;

  // Whether this authority, one of two while it is changed, has signed the certificate.
  bool HasSigned(std::string_view certificate_pem) const;

 private:
  struct Keys;
  CertificateAuthority(std::string folder, std::string text, std::unique_ptr<Keys> keys);
  Status WriteShown() const;

  std::string folder_;
  std::string text_;  // of ca.pem
  std::unique_ptr<Keys> keys_;
  std::string certificate_pem_;
  std::vector<std::string> names_;
};

}  // namespace berth::pki
