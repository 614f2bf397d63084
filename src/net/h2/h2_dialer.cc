// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_dialer.h"

#include <utility>

#include "base/strings.h"
#include "net/h2/h2_channel.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tls_stream.h"
#include "net/url.h"
#include "rt/deadline.h"

namespace berth::net {
namespace {

constexpr std::string_view kAlpn = "h2";

Status Explain(const Status& status, const std::string& address) {
  if (status.Is(Reason::kCancelled)) return status;
  const Status explained = status.Wrap("dial " + address);
  if (IsTrustFailure(status)) {
    const auto causes = explained.causes();
    return {Reason::kUnauthorized,
            std::string(explained.message()),
            std::vector(causes.begin(), causes.end())};
  }
  if (status.Is(Reason::kTimeout)) return Unavailable(std::string(explained.message()));
  return explained;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> H2Dialer::ContextFor(const RpcCredentials& credentials) {
  if (last_context_ != nullptr && credentials == last_credentials_) return last_context_;
  if (credentials.ca_pem.empty() && credentials.ca_pin.empty()) {
    return BadRequest("credentials without a CA and without a CA pin trust nobody");
  }
  TlsClientOptions options;
  options.ca_pem = credentials.ca_pem;
  if (options.ca_pem.empty()) options.ca_pin = credentials.ca_pin;
  options.certificate_pem = credentials.certificate_pem;
  options.key_pem = credentials.key_pem;
  options.alpn = {std::string(kAlpn)};
  TRY(last_context_, TlsContext::NewClient(options));
  last_credentials_ = credentials;
  return last_context_;
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> H2Dialer::Dial(std::string address,
                                                             RpcCredentials credentials,
                                                             Duration limit) {
  CO_TRY(std::shared_ptr<const TlsContext> tls, ContextFor(credentials));
  auto channel = co_await rt::WithDeadline(DialWithin(address, std::move(tls), limit), limit);
  if (!channel.ok()) co_return Explain(channel.status(), address);
  co_return channel;
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> H2Dialer::DialWithin(
    std::string address, std::shared_ptr<const TlsContext> tls, Duration limit) {
  CO_TRY(const HostPort where, ParseHostPort(address, 0));
  CO_TRY(const int fd, co_await ConnectTcp(&loop_, where.host, where.port));
  CO_TRY(std::unique_ptr<Stream> stream,
         co_await TlsStream::Connect(&loop_, fd, std::move(tls), where.host, limit));
  if (stream->alpn() != kAlpn) co_return Unavailable("the server does not speak h2");
  auto channel = std::make_unique<H2Channel>(std::move(stream), limits_, address);
  // Only a server that has accepted our certificate says its settings.
  const Status ready = co_await channel->WaitReady();
  if (!ready.ok()) {
    CO_TRY_STATUS(co_await channel->Close());
    co_return ready;
  }
  co_return std::unique_ptr<RpcChannel>(std::move(channel));
}

}  // namespace berth::net
