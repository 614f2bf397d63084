// SPDX-License-Identifier: Apache-2.0
// A client's connection on a simulated network, and who makes it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "net/sim/sim_end.h"
#include "net/sim/sim_fabric.h"
#include "rt/task.h"

namespace berth::net {

class SimChannel final : public RpcChannel {
 public:
  SimChannel(std::shared_ptr<SimFabric> fabric, std::shared_ptr<SimEnd> end);
  ~SimChannel() override;

  rt::Task<Result<std::string>> Call(std::string method,
                                     std::string request,
                                     RpcOptions options) override;
  rt::Task<Result<std::unique_ptr<MessageStream>>> Open(std::string method,
                                                        RpcOptions options) override;
  bool usable() const override { return end_->usable(); }
  rt::Task<Status> Close() override;

 private:
  Result<std::unique_ptr<MessageStream>> Begin(const std::string& method,
                                               const RpcOptions& options);

  const std::shared_ptr<SimFabric> fabric_;
  const std::shared_ptr<SimEnd> end_;
};

class SimDialer final : public RpcDialer {
 public:
  SimDialer(std::shared_ptr<SimFabric> fabric, std::string node)
      : fabric_(std::move(fabric)), node_(std::move(node)) {}

  rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial(std::string address,
                                                     RpcCredentials credentials,
                                                     Duration limit) override;

 private:
  Status Trust(const std::string& address,
               const RpcCredentials& credentials,
               const std::string& certificate_pem) const;

  const std::shared_ptr<SimFabric> fabric_;
  const std::string node_;
};

}  // namespace berth::net
