// SPDX-License-Identifier: Apache-2.0
// An H2Server on a thread of its own, with its handlers on the caller's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/h2/h2_server.h"
#include "net/rpc.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::net {

class ThreadedServer final : public RpcServer {
 public:
  // As H2Server::Start. Everything here is used on `home`, where the handlers run too.
  static rt::Task<Result<std::unique_ptr<ThreadedServer>>> Start(rt::Loop* home,
                                                                 H2ServerOptions options,
                                                                 RpcRoutes routes);
  // Ends the thread. REQUIRES: Stop() was awaited.
  ~ThreadedServer() override;

  const std::string& address() const override;
  uint16_t port() const;
  void Open();
  void SetTls(std::shared_ptr<const TlsContext> tls);
  rt::Task<Status> Stop() override;
  // Of the thread, to be measured.
  rt::Loop& loop();

 private:
  class Body;
  explicit ThreadedServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
