// SPDX-License-Identifier: Apache-2.0
// A gRPC server for runtimes, on a unix socket or, in tests, on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace grpc {
class Service;
}

namespace berth::net {

class GrpcServer {
 public:
  // Listens on "unix:/run/x.sock" or "127.0.0.1:0", without TLS: who may connect is a matter of
  // file permissions. The services outlive the server.
  static Result<std::unique_ptr<GrpcServer>> Start(const std::string& address,
                                                   const std::vector<grpc::Service*>& services);
  // Listens nowhere: whoever accepts connections adds them.
  static Result<std::unique_ptr<GrpcServer>> StartWithoutPort(
      const std::vector<grpc::Service*>& services);
  // REQUIRES: Stop() was awaited.
  ~GrpcServer();

  // A connected socket that does not block; it is the server's from here. On any thread, not after
  // Stop() was called.
  void Add(int connection);

  // The port that was chosen for ":0".
  int port() const;

  // Takes no new calls, gives those in progress `grace`, then cancels them; all have ended when
  // this returns. Call it on the loop that the services run on. Always ok. Idempotent.
  rt::Task<Status> Stop(Duration grace);

 private:
  class Body;
  explicit GrpcServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
