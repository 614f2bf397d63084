// SPDX-License-Identifier: Apache-2.0
// H2Dialer connects to gRPC servers over HTTP/2 and TLS 1.3.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/h2/h2_limits.h"
#include "net/rpc.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

class H2Dialer final : public RpcDialer {
 public:
  explicit H2Dialer(rt::AsioLoop& loop, H2Limits limits = {}) : loop_(loop), limits_(limits) {}

  rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial(std::string address,
                                                     RpcCredentials credentials,
                                                     Duration limit) override;

 private:
  rt::Task<Result<std::unique_ptr<RpcChannel>>> DialWithin(std::string address,
                                                           std::shared_ptr<const TlsContext> tls,
                                                           Duration limit);
  // The context of the last credentials is kept: making one costs a millisecond.
  Result<std::shared_ptr<const TlsContext>> ContextFor(const RpcCredentials& credentials);

  rt::AsioLoop& loop_;
  const H2Limits limits_;
  RpcCredentials last_credentials_;
  std::shared_ptr<const TlsContext> last_context_;
};

}  // namespace berth::net
