// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_plain_dialer.h"

#include <utility>

#include "net/h2/h2_channel.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/url.h"
#include "rt/deadline.h"

namespace berth::net {

rt::Task<Result<std::unique_ptr<RpcChannel>>> H2PlainDialer::Dial(std::string address,
                                                                  RpcCredentials /*credentials*/,
                                                                  Duration limit) {
  auto channel = co_await rt::WithDeadline(DialWithin(address), limit);
  if (channel.ok() || channel.status().Is(Reason::kCancelled)) co_return channel;
  const Status explained = channel.status().Wrap("dial " + address);
  if (!explained.Is(Reason::kTimeout)) co_return explained;
  co_return Unavailable(std::string(explained.message()));
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> H2PlainDialer::DialWithin(std::string address) {
  CO_TRY(const HostPort where, ParseHostPort(address, 0));
  CO_TRY(const int fd, co_await ConnectTcp(&loop_, where.host, where.port));
  auto stream = std::make_unique<PlainStream>(loop_, fd);
  auto channel = std::make_unique<H2Channel>(std::move(stream), limits_, address);
  const Status ready = co_await channel->WaitReady();
  if (!ready.ok()) {
    CO_TRY_STATUS(co_await channel->Close());
    co_return ready;
  }
  co_return std::unique_ptr<RpcChannel>(std::move(channel));
}

}  // namespace berth::net
