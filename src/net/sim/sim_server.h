// SPDX-License-Identifier: Apache-2.0
// A server on a simulated network.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/rpc.h"
#include "net/sim/sim_end.h"
#include "net/sim/sim_fabric.h"
#include "net/sim/sim_network.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class SimServer final : public RpcServer {
 public:
  static Result<std::unique_ptr<RpcServer>> Start(std::shared_ptr<SimFabric> fabric,
                                                  const std::string& node,
                                                  SimServerOptions options,
                                                  RpcRoutes routes);
  SimServer(std::shared_ptr<SimFabric> fabric,
            const std::string& node,
            SimServerOptions options,
            RpcRoutes routes);
  ~SimServer() override;

  const std::string& address() const override { return address_; }
  rt::Task<Status> Stop() override;

 private:
  struct Session;

  Result<std::shared_ptr<SimEnd>> Accept(SimFabric::Hello hello);
  Result<RpcPeer> Judge(const SimFabric::Hello& hello) const;
  rt::Task<Status> Serve(std::shared_ptr<Session> session);

  const std::shared_ptr<SimFabric> fabric_;
  const SimServerOptions options_;
  const RpcRoutes routes_;
  const std::string address_;
  rt::Loop& loop_;
  bool stopped_ = false;
  std::list<std::shared_ptr<Session>> sessions_;
  rt::TaskScope serving_;
};

}  // namespace berth::net
