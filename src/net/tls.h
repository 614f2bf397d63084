// SPDX-License-Identifier: Apache-2.0
// A TlsContext is what connections share: certificates, trust, ciphers. TLS 1.3 only. Immutable;
// to reload certificates, make a new one and give it to whoever accepts or connects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace berth::net {

enum class ClientCertificates : uint8_t {
  kNone,      // not asked for
  kOptional,  // asked for; one that does not verify ends the handshake
  kRequired,
};

// What becomes of a client's certificate whose time is over.
enum class ExpiredCertificates : uint8_t {
  kRefuse,  // no connection
  kMark,    // handlers see it and decide: the door for a late renewal
};

enum class CertificateState : uint8_t { kNone, kValid, kExpired };

struct TlsServerOptions {
  std::string certificate_pem;  // leaf first, then its chain
  std::string key_pem;
  ClientCertificates client_certificates = ClientCertificates::kNone;
  std::string client_ca_pem;  // what client certificates are verified against
  ExpiredCertificates expired_client_certificates = ExpiredCertificates::kRefuse;
  std::vector<std::string> alpn = {"http/1.1"};
};

enum class ServerTrust : uint8_t {
  kVerify,
  // Any certificate will do: only to fetch a CA whose hash is known already.
  kAnyCertificate,
};

struct TlsClientOptions {
  std::string ca_pem;  // "": the system's trust store
  ServerTrust trust = ServerTrust::kVerify;
  // "sha256:<64 hex digits>" of a CA certificate's DER: instead of ca_pem, the server must present
  // that CA behind its leaf, and its leaf must verify against it. Nothing of ours is sent before.
  std::string ca_pin;
  std::string certificate_pem;  // "" for none
  std::string key_pem;
  std::vector<std::string> alpn = {"http/1.1"};
};

class TlsContext {
 public:
  // BadRequest says which of the inputs is wrong and why.
  static Result<std::shared_ptr<const TlsContext>> NewServer(const TlsServerOptions& options);
  static Result<std::shared_ptr<const TlsContext>> NewClient(const TlsClientOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* handle() const { return handle_; }

 private:
  explicit TlsContext(ssl_ctx_st* handle) : handle_(handle) {}

  ssl_ctx_st* handle_;
  std::string alpn_;    // in wire form; OpenSSL's callback refers to it
  std::string ca_pin_;  // 32 bytes, or ""; OpenSSL's callback refers to it
};

// True for an error that says: one of the two ends does not trust the other's certificate.
bool IsTrustFailure(const Status& status);
// Such an error. Unavailable, as every failure to connect is.
Status TrustFailure(std::string message);

// Whether the first certificate of `pem` (a chain, leaf first) is a client's that one of the CAs
// has signed, at the time `now`: kValid or kExpired. Unauthorized says why it is neither.
Result<CertificateState> VerifyClientCertificate(const std::string& pem,
                                                 const std::string& ca_pem,
                                                 WallTime now);
// The same for a server's certificate, whose host `name` it must be for. The trust is a CA bundle
// or, if that is empty, a pin as in TlsClientOptions.
Status VerifyServerCertificate(const std::string& pem,
                               const std::string& ca_pem,
                               const std::string& ca_pin,
                               const std::string& name,
                               WallTime now);
// The DER of the first certificate of a PEM text.
Result<std::string> CertificateDer(const std::string& pem);

// The text of OpenSSL's last error on this thread, and forgets it.
std::string TakeOpenSslError();

}  // namespace berth::net
