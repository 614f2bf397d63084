// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/strings.h"

namespace berth::net {
namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct CtxFree {
  void operator()(SSL_CTX* ctx) const { SSL_CTX_free(ctx); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;
using X509Ptr = std::unique_ptr<X509, X509Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;
using CtxPtr = std::unique_ptr<SSL_CTX, CtxFree>;

BioPtr MemoryBio(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// No terminal prompt, ever: an encrypted key is an error.
int NoPassword(char*, int, int, void*) { return 0; }

// Calls `use` with every certificate in the PEM text.
template <class F>
Status ForEachCertificate(const std::string& pem, std::string_view what, F use) {
  const BioPtr bio = MemoryBio(pem);
  int count = 0;
  ERR_clear_error();
  while (X509* raw = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    const X509Ptr certificate(raw);
    if (!use(certificate.get())) {
      return BadRequest(fmt::format("{}: certificate {}: {}", what, count + 1, TakeOpenSslError()));
    }
    ++count;
  }
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (count == 0 && at_end) return BadRequest(fmt::format("{}: no PEM certificate in it", what));
  if (!at_end) return BadRequest(fmt::format("{}: {}", what, TakeOpenSslError()));
  ERR_clear_error();
  return OkStatus();
}

Status UseIdentity(SSL_CTX* ctx, const std::string& certificate_pem, const std::string& key_pem) {
  bool leaf = true;
  TRY_STATUS(ForEachCertificate(certificate_pem, "certificate", [ctx, &leaf](X509* certificate) {
    if (!std::exchange(leaf, false)) return SSL_CTX_add1_chain_cert(ctx, certificate) == 1;
    return SSL_CTX_use_certificate(ctx, certificate) == 1;
  }));
  const BioPtr bio = MemoryBio(key_pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return BadRequest("private key: " + TakeOpenSslError());
  if (SSL_CTX_use_PrivateKey(ctx, key.get()) != 1) {
    return BadRequest("private key: it does not belong to the certificate: " + TakeOpenSslError());
  }
  return OkStatus();
}

Status UseTrust(SSL_CTX* ctx, const std::string& ca_pem, std::string_view what) {
  X509_STORE* store = SSL_CTX_get_cert_store(ctx);
  return ForEachCertificate(ca_pem, what, [store](X509* certificate) {
    return X509_STORE_add_cert(store, certificate) == 1;
  });
}

// Names as ALPN carries them: each behind its length.
std::string AlpnWire(const std::vector<std::string>& names) {
  std::string wire;
  for (const std::string& name : names) {
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

int SelectAlpn(SSL*,
               const unsigned char** out,
               unsigned char* out_size,
               const unsigned char* offered,
               unsigned int offered_size,
               void* ours) {
  const auto& wire = *static_cast<const std::string*>(ours);
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen,
                                          out_size,
                                          reinterpret_cast<const unsigned char*>(wire.data()),
                                          static_cast<unsigned int>(wire.size()),
                                          offered,
                                          offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<CtxPtr> NewContext(const SSL_METHOD* method) {
  ERR_clear_error();
  CtxPtr ctx(SSL_CTX_new(method));
  if (ctx == nullptr) return Internal("tls context: " + TakeOpenSslError());
  SSL_CTX_set_min_proto_version(ctx.get(), TLS1_3_VERSION);
  // Released buffers: 14 KB per idle connection instead of 48. Partial writes from moving memory:
  // the answer is gathered anew when a write must be repeated.
  SSL_CTX_set_mode(ctx.get(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(ctx.get(), 1);  // one read per record instead of two
  SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_OFF);
  return ctx;
}

constexpr std::string_view kPinPrefix = "sha256:";
constexpr size_t kSha256Bytes = 32;

// The 32 bytes of a pin.
Result<std::string> ParsePin(const std::string& pin) {
  const Status wrong =
      BadRequest("CA pin " + Quote(pin) + ": it must be sha256: and 64 hexadecimal digits");
  if (!pin.starts_with(kPinPrefix)) return wrong;
  const std::string_view hex = std::string_view(pin).substr(kPinPrefix.size());
  if (hex.size() != 2 * kSha256Bytes) return wrong;
  std::string bytes(kSha256Bytes, '\0');
  for (size_t i = 0; i < kSha256Bytes; ++i) {
    unsigned int value = 0;
    const char* end = hex.data() + 2 * i + 2;
    const auto parsed = std::from_chars(hex.data() + 2 * i, end, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) return wrong;
    bytes[i] = static_cast<char>(value);
  }
  return bytes;
}

bool HasDigest(const X509* certificate, const std::string& sha256) {
  std::array<unsigned char, kSha256Bytes> digest{};
  unsigned int size = 0;
  return X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1 &&
         std::string_view(reinterpret_cast<const char*>(digest.data()), size) == sha256;
}

// Instead of OpenSSL's own verification: the only trusted certificate is the one of the presented
// chain that has the pinned digest. Name and purpose are checked as ever.
int VerifyByPin(X509_STORE_CTX* verification, void* pin) {
  const auto& sha256 = *static_cast<const std::string*>(pin);
  STACK_OF(X509)* presented = X509_STORE_CTX_get0_untrusted(verification);
  for (int i = 0; i < sk_X509_num(presented); ++i) {
    X509* certificate = sk_X509_value(presented, i);
    if (!HasDigest(certificate, sha256) || X509_check_ca(certificate) == 0) continue;
    STACK_OF(X509)* trusted = sk_X509_new_null();
    sk_X509_push(trusted, certificate);
    X509_STORE_CTX_set0_trusted_stack(verification, trusted);
    const int verified = X509_verify_cert(verification);
    X509_STORE_CTX_set0_trusted_stack(verification, nullptr);
    sk_X509_free(trusted);
    return verified;
  }
  X509_STORE_CTX_set_error(verification, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
  return 0;
}

// Lets an expired leaf through; the verification's result still names it.
int AcceptExpiredLeaf(int verified, X509_STORE_CTX* verification) {
  if (verified == 1) return 1;
  return X509_STORE_CTX_get_error(verification) == X509_V_ERR_CERT_HAS_EXPIRED &&
                 X509_STORE_CTX_get_error_depth(verification) == 0
             ? 1
             : 0;
}

struct StoreFree {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
};
struct VerificationFree {
  void operator()(X509_STORE_CTX* verification) const { X509_STORE_CTX_free(verification); }
};

// A verification outside of a connection.
struct Verification {
  std::vector<X509Ptr> chain;  // leaf first
  std::unique_ptr<X509_STORE, StoreFree> store{X509_STORE_new()};
  STACK_OF(X509) * untrusted = sk_X509_new_null();
  std::unique_ptr<X509_STORE_CTX, VerificationFree> context{X509_STORE_CTX_new()};

  Verification() = default;
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;
  ~Verification() {
    context.reset();
    sk_X509_free(untrusted);
  }

  Status Prepare(const std::string& pem, const std::string& ca_pem, WallTime now) {
    TRY_STATUS(ForEachCertificate(pem, "certificate", [this](X509* certificate) {
      X509_up_ref(certificate);
      chain.emplace_back(certificate);
      return sk_X509_push(untrusted, certificate) > 0;
    }));
    if (!ca_pem.empty()) {
      TRY_STATUS(ForEachCertificate(ca_pem, "CA bundle", [this](X509* certificate) {
        return X509_STORE_add_cert(store.get(), certificate) == 1;
      }));
    }
    if (X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), untrusted) != 1) {
      return Internal("certificate: " + TakeOpenSslError());
    }
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), now.seconds());
    return OkStatus();
  }
  Status Error() const {
    const int error = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    return Unauthorized(std::string("certificate: ") + X509_verify_cert_error_string(error));
  }
};

constexpr std::string_view kTrustCause = "tls.certificate";

}  // namespace

bool IsTrustFailure(const Status& status) {
  for (const Cause& cause : status.causes()) {
    if (cause.field == kTrustCause) return true;
  }
  return false;
}

Status TrustFailure(std::string message) {
  Cause cause{
      .kind = CauseKind::kForbidden, .field = std::string(kTrustCause), .message = "not trusted"};
  return {Reason::kUnavailable, std::move(message), {std::move(cause)}};
}

Result<CertificateState> VerifyClientCertificate(const std::string& pem,
                                                 const std::string& ca_pem,
                                                 WallTime now) {
  Verification verification;
  TRY_STATUS(verification.Prepare(pem, ca_pem, now));
  X509_STORE_CTX_set_default(verification.context.get(), "ssl_client");
  X509_STORE_CTX_set_verify_cb(verification.context.get(), AcceptExpiredLeaf);
  if (X509_verify_cert(verification.context.get()) != 1) return verification.Error();
  return X509_STORE_CTX_get_error(verification.context.get()) == X509_V_ERR_CERT_HAS_EXPIRED
             ? CertificateState::kExpired
             : CertificateState::kValid;
}

Status VerifyServerCertificate(const std::string& pem,
                               const std::string& ca_pem,
                               const std::string& ca_pin,
                               const std::string& name,
                               WallTime now) {
  Verification verification;
  TRY_STATUS(verification.Prepare(pem, ca_pem, now));
  X509_STORE_CTX_set_default(verification.context.get(), "ssl_server");
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(verification.context.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) != 1) {
    ERR_clear_error();
    X509_VERIFY_PARAM_set1_host(param, name.data(), name.size());
  }
  int verified = 0;
  if (ca_pem.empty()) {
    TRY(std::string pin, ParsePin(ca_pin));
    verified = VerifyByPin(verification.context.get(), &pin);
  } else {
    verified = X509_verify_cert(verification.context.get());
  }
  return verified == 1 ? OkStatus() : verification.Error();
}

Result<std::string> CertificateDer(const std::string& pem) {
  std::string der;
  TRY_STATUS(ForEachCertificate(pem, "certificate", [&der](X509* certificate) {
    if (!der.empty()) return true;
    const int size = i2d_X509(certificate, nullptr);
    if (size <= 0) return false;
    der.resize(static_cast<size_t>(size));
    auto* out = reinterpret_cast<unsigned char*>(der.data());
    i2d_X509(certificate, &out);
    return true;
  }));
  return der;
}

std::string TakeOpenSslError() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

TlsContext::~TlsContext() { SSL_CTX_free(handle_); }

Result<std::shared_ptr<const TlsContext>> TlsContext::NewServer(const TlsServerOptions& options) {
  TRY(CtxPtr ctx, NewContext(TLS_server_method()));
  TRY_STATUS(UseIdentity(ctx.get(), options.certificate_pem, options.key_pem));
  // No resumption: a resumed session would carry a client certificate that nobody verified today.
  // One ticket is still sent, which saves clients without TCP_NODELAY 40 ms on the first answer.
  SSL_CTX_set_options(ctx.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(ctx.get(), 1);
  static constexpr unsigned char kSessionContext[] = "berth";
  SSL_CTX_set_session_id_context(ctx.get(), kSessionContext, sizeof(kSessionContext) - 1);
  if (options.client_certificates != ClientCertificates::kNone) {
    TRY_STATUS(UseTrust(ctx.get(), options.client_ca_pem, "client CA bundle"));
    TRY_STATUS(
        ForEachCertificate(options.client_ca_pem, "client CA bundle", [&ctx](X509* certificate) {
          return SSL_CTX_add_client_CA(ctx.get(), certificate) == 1;
        }));
    int mode = SSL_VERIFY_PEER;
    if (options.client_certificates == ClientCertificates::kRequired) {
      mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
    const bool mark = options.expired_client_certificates == ExpiredCertificates::kMark;
    SSL_CTX_set_verify(ctx.get(), mode, mark ? AcceptExpiredLeaf : nullptr);
  }
  std::shared_ptr<TlsContext> result(new TlsContext(ctx.release()));
  result->alpn_ = AlpnWire(options.alpn);
  if (!result->alpn_.empty()) {
    SSL_CTX_set_alpn_select_cb(result->handle_, SelectAlpn, &result->alpn_);
  }
  return std::shared_ptr<const TlsContext>(std::move(result));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::NewClient(const TlsClientOptions& options) {
  TRY(CtxPtr ctx, NewContext(TLS_client_method()));
  if (!options.certificate_pem.empty()) {
    TRY_STATUS(UseIdentity(ctx.get(), options.certificate_pem, options.key_pem));
  }
  std::string pin;
  if (!options.ca_pin.empty()) {
    TRY(pin, ParsePin(options.ca_pin));
    SSL_CTX_set_verify(ctx.get(), SSL_VERIFY_PEER, nullptr);
  } else if (options.trust == ServerTrust::kVerify) {
    SSL_CTX_set_verify(ctx.get(), SSL_VERIFY_PEER, nullptr);
    if (!options.ca_pem.empty()) {
      TRY_STATUS(UseTrust(ctx.get(), options.ca_pem, "CA bundle"));
    } else if (SSL_CTX_set_default_verify_paths(ctx.get()) != 1) {
      return Internal("the system's trust store: " + TakeOpenSslError());
    }
  }
  std::shared_ptr<TlsContext> result(new TlsContext(ctx.release()));
  result->ca_pin_ = std::move(pin);
  if (!result->ca_pin_.empty()) {
    SSL_CTX_set_cert_verify_callback(result->handle_, VerifyByPin, &result->ca_pin_);
  }
  result->alpn_ = AlpnWire(options.alpn);
  if (!result->alpn_.empty()) {
    SSL_CTX_set_alpn_protos(result->handle_,
                            reinterpret_cast<const unsigned char*>(result->alpn_.data()),
                            static_cast<unsigned int>(result->alpn_.size()));
  }
  return std::shared_ptr<const TlsContext>(std::move(result));
}

}  // namespace berth::net
