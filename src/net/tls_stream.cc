// SPDX-License-Identifier: Apache-2.0
#include "net/tls_stream.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr std::string_view kPlainHttpAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    "this is an HTTPS port: use https:// instead of http://\n";

constexpr size_t kRecordMax = 16 * 1024;  // of plaintext, by the protocol
// After a shorter record, with nothing behind it, another read would find nothing.
constexpr size_t kLoneRecordMax = 4 * 1024;

// Small parts are put together here before they become a record. One per thread is enough: it is
// filled and used within one call.
thread_local std::array<char, kRecordMax> gather;

// The bytes from `offset` on that become the next record: in place if one part has a record's
// worth, else copied together.
std::string_view NextRecord(std::span<const std::string_view> parts, size_t offset) {
  size_t filled = 0;
  for (const std::string_view part : parts) {
    if (offset >= part.size()) {
      offset -= part.size();
      continue;
    }
    const std::string_view rest = part.substr(offset);
    offset = 0;
    if (filled == 0 && rest.size() >= kRecordMax) return rest.substr(0, kRecordMax);
    const size_t taken = std::min(rest.size(), gather.size() - filled);
    std::memcpy(gather.data() + filled, rest.data(), taken);
    filled += taken;
    if (filled == gather.size()) break;
  }
  return {gather.data(), filled};
}

bool IsNumericAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

std::string VerifyErrorText(long error, const std::string& name) {
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: return "certificate signed by unknown authority";
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "certificate signed by unknown authority (its signature does not match the CA of that "
             "name)";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "certificate is not valid for " + name;
    case X509_V_ERR_CERT_HAS_EXPIRED: return "certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "certificate is not valid yet: are the clocks right?";
    default: return std::string("certificate: ") + X509_verify_cert_error_string(error);
  }
}

// What the peer's alert says about our certificate; "" if it is about something else.
std::string_view RefusalText(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return "wants a certificate of us";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return "does not know the CA of our certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return "says that our certificate has expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED: return "says that our certificate is revoked";
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: return "refuses our certificate";
    default: return {};
  }
}

}  // namespace

TlsStream::TlsStream(rt::AsioLoop& loop, int fd, std::shared_ptr<const TlsContext> context)
    : Stream(loop, fd), context_(std::move(context)), ssl_(SSL_new(context_->handle())) {
  CHECK(ssl_ != nullptr) << "out of memory";
  CHECK(SSL_set_fd(ssl_, fd) == 1);
}

TlsStream::~TlsStream() {
  ERR_clear_error();
  SSL_free(ssl_);
}

rt::Task<Result<std::unique_ptr<Stream>>> TlsStream::Accept(
    rt::AsioLoop* loop,
    int fd,
    std::shared_ptr<const TlsContext> context,
    Duration limit,
    HandshakeLane* lane) {
  std::unique_ptr<TlsStream> stream(new TlsStream(*loop, fd, std::move(context)));
  SSL_set_accept_state(stream->ssl_);
  const Status shaken = co_await stream->Handshake(limit, lane);
  if (!shaken.ok()) {
    if (stream->plain_http_) {
      ::send(fd, kPlainHttpAnswer.data(), kPlainHttpAnswer.size(), MSG_NOSIGNAL);
      const Status lingered = co_await stream->Linger();
      if (lingered.Is(Reason::kCancelled)) co_return lingered;
    }
    co_return shaken;
  }
  co_return std::unique_ptr<Stream>(std::move(stream));
}

rt::Task<Result<std::unique_ptr<Stream>>> TlsStream::Connect(
    rt::AsioLoop* loop,
    int fd,
    std::shared_ptr<const TlsContext> context,
    std::string server_name,
    Duration limit) {
  std::unique_ptr<TlsStream> stream(new TlsStream(*loop, fd, std::move(context)));
  CO_TRY_STATUS(stream->SetServerName(server_name));
  SSL_set_connect_state(stream->ssl_);
  CO_TRY_STATUS(co_await stream->Handshake(limit, nullptr));
  co_return std::unique_ptr<Stream>(std::move(stream));
}

Status TlsStream::SetServerName(const std::string& name) {
  server_name_ = name;
  bool accepted = false;
  if (IsNumericAddress(name)) {
    accepted = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), name.c_str()) == 1;
  } else {
    accepted =
        SSL_set1_host(ssl_, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl_, name.c_str()) == 1;
  }
  if (!accepted) return BadRequest("tls: server name \"" + name + "\": " + TakeOpenSslError());
  return OkStatus();
}

// One attempt to get on with the handshake: what SSL_get_error says of it, errno kept.
rt::Task<Result<int>> TlsStream::HandshakeStep(HandshakeLane::Passage* passage) {
  std::optional<HandshakeLane::Turn> turn;
  if (passage != nullptr) {
    CO_TRY(HandshakeLane::Turn mine, co_await passage->Next());
    turn.emplace(std::move(mine));
    CO_TRY_STATUS(co_await rt::Yield());
  }
  ERR_clear_error();
  errno = 0;
  co_return SSL_get_error(ssl_, SSL_do_handshake(ssl_));
}

rt::Task<Status> TlsStream::Handshake(Duration limit, HandshakeLane* lane) {
  const Time deadline = loop().Now() + limit;
  socket().SetReadDeadline(deadline);
  socket().SetWriteDeadline(deadline);
  std::optional<HandshakeLane::Passage> passage;
  if (lane != nullptr) passage.emplace(*lane);
  // In a lane the client has the first word: before it has come, there is nothing to compute.
  int want = lane != nullptr ? SSL_ERROR_WANT_READ : SSL_ERROR_NONE;
  for (;;) {
    Status ready;
    if (want != SSL_ERROR_NONE) {
      ready = co_await WaitFor(want == SSL_ERROR_WANT_READ ? Io::kWantRead : Io::kWantWrite);
    }
    if (!ready.ok()) {
      broken_ = true;
      if (!ready.Is(Reason::kTimeout)) co_return ready;
      co_return Timeout("tls handshake: no answer within " + FormatDuration(limit));
    }
    CO_TRY(want, co_await HandshakeStep(passage ? &*passage : nullptr));
    if (want == SSL_ERROR_NONE) break;
    if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE) {
      broken_ = true;
      co_return HandshakeError();
    }
  }
  socket().SetReadDeadline(std::nullopt);
  socket().SetWriteDeadline(std::nullopt);
  co_return OkStatus();
}

Status TlsStream::HandshakeError() {
  const int system_error = errno;
  const long verify = SSL_get_verify_result(ssl_);
  if (verify != X509_V_OK) {
    return TrustFailure("tls: " + VerifyErrorText(verify, server_name_));
  }
  if (ERR_peek_error() == 0) {
    if (system_error == 0) return Unavailable("tls handshake: the peer closed the connection");
    return Unavailable("tls handshake: " + std::generic_category().message(system_error));
  }
  if (const std::string_view refusal = RefusalText(ERR_GET_REASON(ERR_peek_error()));
      !refusal.empty()) {
    return TrustFailure(fmt::format("tls: {}: the peer {}", TakeOpenSslError(), refusal));
  }
  plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  return Unavailable("tls handshake: " + TakeOpenSslError());
}

// Translates what an SSL_* call gave. REQUIRES: the error queue was cleared before the call.
Stream::IoResult TlsStream::Judge(int returned, size_t bytes) const {
  if (returned > 0) return {.io = Io::kDone, .bytes = bytes};
  const int system_error = errno;
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ: return {.io = Io::kWantRead};
    case SSL_ERROR_WANT_WRITE: return {.io = Io::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {.io = Io::kEnd, .error = Unavailable("the peer closed the connection")};
    case SSL_ERROR_SYSCALL:
      return {.io = Io::kFailed,
              .error =
                  Unavailable("connection lost: " +
                              (system_error == 0 ? std::string("closed by the peer")
                                                 : std::generic_category().message(system_error)))};
    default: break;
  }
  if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    return {.io = Io::kFailed, .error = Unavailable("connection lost: cut without a close")};
  }
  const std::string_view refusal = RefusalText(ERR_GET_REASON(ERR_peek_error()));
  if (!refusal.empty()) {
    return {
        .io = Io::kFailed,
        .error = TrustFailure(fmt::format("tls: {}: the peer {}", TakeOpenSslError(), refusal))};
  }
  return {.io = Io::kFailed, .error = Unavailable("tls: " + TakeOpenSslError())};
}

Stream::IoResult TlsStream::TryRead(std::span<char> into) {
  ERR_clear_error();
  errno = 0;
  size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_, into.data(), into.size(), &bytes);
  IoResult result = Judge(returned, bytes);
  broken_ = broken_ || result.io == Io::kFailed;
  result.is_drained = result.io == Io::kDone && bytes < std::min(into.size(), kLoneRecordMax) &&
                      SSL_has_pending(ssl_) == 0;
  return result;
}

Stream::IoResult TlsStream::TryWrite(std::span<const std::string_view> parts, size_t offset) {
  const std::string_view record = NextRecord(parts, offset);
  ERR_clear_error();
  errno = 0;
  size_t bytes = 0;
  const int returned = SSL_write_ex(ssl_, record.data(), record.size(), &bytes);
  IoResult result = Judge(returned, bytes);
  broken_ = broken_ || result.io == Io::kFailed;
  return result;
}

Stream::IoResult TlsStream::TryPeek() {
  ERR_clear_error();
  errno = 0;
  char byte = 0;
  size_t bytes = 0;
  const int returned = SSL_peek_ex(ssl_, &byte, 1, &bytes);
  IoResult result = Judge(returned, bytes);
  broken_ = broken_ || result.io == Io::kFailed;
  return result;
}

bool TlsStream::HasBuffered() const { return SSL_has_pending(ssl_) == 1; }

void TlsStream::Shutdown() {
  if (broken_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

std::string TlsStream::peer_certificate_der() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  const int size = i2d_X509(certificate, nullptr);
  if (size <= 0) return {};
  std::string der(static_cast<size_t>(size), '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509(certificate, &out);
  return der;
}

CertificateState TlsStream::peer_certificate_state() const {
  if (SSL_get0_peer_certificate(ssl_) == nullptr) return CertificateState::kNone;
  return SSL_get_verify_result(ssl_) == X509_V_ERR_CERT_HAS_EXPIRED ? CertificateState::kExpired
                                                                    : CertificateState::kValid;
}

std::string TlsStream::peer_subject_hash() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  if (X509_NAME_digest(subject, EVP_sha256(), digest.data(), &size) != 1) return {};
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string TlsStream::alpn() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return name == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(name), size);
}

}  // namespace berth::net
