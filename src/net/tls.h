// SPDX-License-Identifier: Apache-2.0
// A TlsContext is what connections share: certificates, trust, ciphers. TLS 1.3 only. Immutable;
// to reload certificates, make a new one and give it to whoever accepts or connects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace berth::net {

enum class ClientCertificates : uint8_t {
  kNone,      // not asked for
  kOptional,  // asked for; one that does not verify ends the handshake
  kRequired,
};

struct TlsServerOptions {
  std::string certificate_pem;  // leaf first, then its chain
  std::string key_pem;
  ClientCertificates client_certificates = ClientCertificates::kNone;
  std::string client_ca_pem;  // what client certificates are verified against
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
  std::string alpn_;  // in wire form; OpenSSL's callback refers to it
};

// The text of OpenSSL's last error on this thread, and forgets it.
std::string TakeOpenSslError();

}  // namespace berth::net
