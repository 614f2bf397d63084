// SPDX-License-Identifier: Apache-2.0
// An H2PlainDialer connects to gRPC servers over HTTP/2 without TLS: for a server on the same host
// or behind a tunnel, as an etcd often is. Credentials are not looked at.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/h2/h2_limits.h"
#include "net/rpc.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

class H2PlainDialer final : public RpcDialer {
 public:
  explicit H2PlainDialer(rt::AsioLoop& loop, H2Limits limits = {}) : loop_(loop), limits_(limits) {}

  rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial(std::string address,
                                                     RpcCredentials credentials,
                                                     Duration limit) override;

 private:
  rt::Task<Result<std::unique_ptr<RpcChannel>>> DialWithin(std::string address);

  rt::AsioLoop& loop_;
  const H2Limits limits_;
};

}  // namespace berth::net
