// SPDX-License-Identifier: Apache-2.0
#include "net/testing/http_fixture.h"

#include <array>
#include <utility>

#include "net/socket.h"
#include "net/tls_stream.h"

namespace berth::net {
namespace {

constexpr Duration kPatience = Duration::Seconds(20);
thread_local std::array<char, 16 * 1024> scratch;

}  // namespace

TestTls::TestTls() : server_(pki_.IssueServer({"localhost", "127.0.0.1"})) {}

std::shared_ptr<const TlsContext> TestTls::server(ClientCertificates mode) {
  return *TlsContext::NewServer({.certificate_pem = server_.certificate_pem,
                                 .key_pem = server_.key_pem,
                                 .client_certificates = mode,
                                 .client_ca_pem = pki_.ca_pem()});
}

std::shared_ptr<const TlsContext> TestTls::client() {
  return *TlsContext::NewClient({.ca_pem = pki_.ca_pem()});
}

std::shared_ptr<const TlsContext> TestTls::client(const TestIdentity& identity) {
  return *TlsContext::NewClient({.ca_pem = pki_.ca_pem(),
                                 .certificate_pem = identity.certificate_pem,
                                 .key_pem = identity.key_pem});
}

rt::Task<Result<std::unique_ptr<RawClient>>> RawClient::Connect(rt::AsioLoop* loop, uint16_t port) {
  CO_TRY(const int fd, co_await ConnectTcp(loop, "127.0.0.1", port));
  co_return std::make_unique<RawClient>(std::make_unique<PlainStream>(*loop, fd));
}

rt::Task<Result<std::unique_ptr<RawClient>>> RawClient::ConnectTls(
    rt::AsioLoop* loop, uint16_t port, std::shared_ptr<const TlsContext> tls) {
  CO_TRY(const int fd, co_await ConnectTcp(loop, "127.0.0.1", port));
  CO_TRY(auto stream, co_await TlsStream::Connect(loop, fd, tls, "127.0.0.1", kPatience));
  co_return std::make_unique<RawClient>(std::move(stream));
}

rt::Task<Status> RawClient::Write(std::string bytes) {
  const std::array<std::string_view, 1> parts = {bytes};
  co_return co_await stream_->Write(parts);
}

rt::Task<Result<std::string>> RawClient::ReadUntil(std::string marker) {
  stream_->SetReadDeadline(stream_->loop().Now() + kPatience);
  for (;;) {
    const size_t found = inbox_.find(marker);
    if (found != std::string::npos) {
      std::string text = inbox_.substr(0, found + marker.size());
      inbox_.erase(0, text.size());
      co_return text;
    }
    CO_TRY(const size_t n, co_await stream_->Read(scratch));
    if (n == 0) co_return Unavailable("the connection ended after: " + inbox_);
    inbox_.append(scratch.data(), n);
  }
}

rt::Task<Result<std::string>> RawClient::ReadAll() {
  stream_->SetReadDeadline(stream_->loop().Now() + kPatience);
  for (;;) {
    CO_TRY(const size_t n, co_await stream_->Read(scratch));
    if (n == 0) co_return std::exchange(inbox_, std::string());
    inbox_.append(scratch.data(), n);
  }
}

}  // namespace berth::net
