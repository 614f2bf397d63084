// SPDX-License-Identifier: Apache-2.0
// An H2Channel is a client's connection: calls and streams on one H2Connection.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/h2/h2_connection.h"
#include "net/h2/h2_limits.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class H2Channel final : public RpcChannel {
 public:
  H2Channel(std::unique_ptr<Stream> stream, const H2Limits& limits, std::string authority);
  // REQUIRES: Close() was awaited.
  ~H2Channel() override;

  // Ok once the server has accepted the connection.
  rt::Task<Status> WaitReady() { return connection_.WaitReady(); }

  rt::Task<Result<std::string>> Call(std::string method,
                                     std::string request,
                                     RpcOptions options) override;
  rt::Task<Result<std::unique_ptr<MessageStream>>> Open(std::string method,
                                                        RpcOptions options) override;
  bool usable() const override { return connection_.usable(); }
  rt::Task<Status> Close() override;

 private:
  rt::Task<Status> Run();
  Result<std::unique_ptr<MessageStream>> Begin(const std::string& method,
                                               const RpcOptions& options);

  const H2Limits limits_;
  const std::string authority_;
  H2Connection connection_;
  rt::TaskScope running_;
};

}  // namespace berth::net
