// SPDX-License-Identifier: Apache-2.0
#include "net/sim/sim_channel.h"

#include <utility>

#include "net/call/call_client.h"
#include "net/url.h"
#include "rt/deadline.h"

namespace berth::net {

SimChannel::SimChannel(std::shared_ptr<SimFabric> fabric, std::shared_ptr<SimEnd> end)
    : fabric_(std::move(fabric)), end_(std::move(end)) {}

SimChannel::~SimChannel() { end_->Close(Unavailable("the connection is closed")); }

Result<std::unique_ptr<MessageStream>> SimChannel::Begin(const std::string& method,
                                                         const RpcOptions& options) {
  TRY(std::shared_ptr<CallStream> stream, end_->Request(method, options));
  if (options.deadline.has_value()) stream->SetDeadline(*options.deadline);
  return HoldCall(std::move(stream));
}

rt::Task<Result<std::string>> SimChannel::Call(std::string method,
                                               std::string request,
                                               RpcOptions options) {
  CO_TRY(std::unique_ptr<MessageStream> stream, Begin(method, options));
  co_return co_await CallUnary(std::move(stream), std::move(method), std::move(request));
}

rt::Task<Result<std::unique_ptr<MessageStream>>> SimChannel::Open(std::string method,
                                                                  RpcOptions options) {
  co_return Begin(method, options);
}

rt::Task<Status> SimChannel::Close() {
  end_->Close(Unavailable("the connection is closed"));
  co_return OkStatus();
}

Status SimDialer::Trust(const std::string& address,
                        const RpcCredentials& credentials,
                        const std::string& certificate_pem) const {
  if (certificate_pem.empty()) return OkStatus();
  TRY(const HostPort where, ParseHostPort(address, 0));
  const Status verified = VerifyServerCertificate(certificate_pem,
                                                  credentials.ca_pem,
                                                  credentials.ca_pin,
                                                  where.host,
                                                  fabric_->loop_of(node_).WallNow());
  if (!verified.Is(Reason::kUnauthorized)) return verified;
  const Status failure = TrustFailure(std::string(verified.message()));
  const auto causes = failure.causes();
  return {Reason::kUnauthorized,
          std::string(verified.message()),
          std::vector(causes.begin(), causes.end())};
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> SimDialer::Dial(std::string address,
                                                              RpcCredentials credentials,
                                                              Duration limit) {
  const std::shared_ptr<SimEnd> end =
      SimFabric::Connect(fabric_, node_, address, credentials.certificate_pem);
  auto channel = std::make_unique<SimChannel>(fabric_, end);  // closes the connection if we fail
  const auto welcome = co_await rt::WithDeadline(end->WaitWelcome(), limit);
  Status status = welcome.ok() ? Trust(address, credentials, *welcome) : welcome.status();
  if (status.Is(Reason::kTimeout)) status = Unavailable(std::string(status.message()));
  if (!status.ok())
    co_return status.Is(Reason::kCancelled) ? status : status.Wrap("dial " + address);
  co_return std::unique_ptr<RpcChannel>(std::move(channel));
}

}  // namespace berth::net
