// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <utility>

#include "base/check.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/thread_pool.h"

namespace berth::net {

class GrpcServer::Body {
 public:
  Body(std::unique_ptr<grpc::Server> server, int port) : server_(std::move(server)), port_(port) {}
  ~Body() { CHECK(stopped_) << "a gRPC server is destroyed before Stop() was awaited"; }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  int port() const { return port_; }

  void Add(int connection) {
    const IntoGrpc into(&kGrpcServerTag);
    grpc::AddInsecureChannelFromFd(server_.get(), connection);
  }

  rt::Task<Status> Stop(Duration grace) {
    if (stopped_) co_return OkStatus();
    // Shutdown blocks until the last call has ended, and calls end on our loop: another thread
    // waits.
    const auto shut_down = [this, grace] {
      server_->Shutdown(GrpcDeadline(grace));
      server_->Wait();
      return OkStatus();
    };
    const Status status = co_await waiting_.Run("net.grpc.shutdown", shut_down);
    stopped_ = status.ok();
    co_return status;
  }

 private:
  std::unique_ptr<grpc::Server> server_;
  const int port_;
  bool stopped_ = false;
  rt::ThreadPool waiting_{{.threads = 1, .queue_max = 1, .name = "grpc-stop"}};
};

GrpcServer::GrpcServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
GrpcServer::~GrpcServer() = default;

static std::unique_ptr<grpc::Server> Build(grpc::ServerBuilder& builder,
                                           const std::vector<grpc::Service*>& services) {
  for (grpc::Service* service : services) builder.RegisterService(service);
  const IntoGrpc into(&kGrpcServerTag);
  return builder.BuildAndStart();
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::StartWithoutPort(
    const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  std::unique_ptr<grpc::Server> server = Build(builder, services);
  if (server == nullptr) return Unavailable("grpc: cannot serve");
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::make_unique<Body>(std::move(server), 0)));
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address,
                                                      const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::unique_ptr<grpc::Server> server = Build(builder, services);
  if (server == nullptr) return Unavailable("grpc: cannot listen on " + address);
  return std::unique_ptr<GrpcServer>(
      new GrpcServer(std::make_unique<Body>(std::move(server), port)));
}

void GrpcServer::Add(int connection) { body_->Add(connection); }
int GrpcServer::port() const { return body_->port(); }
rt::Task<Status> GrpcServer::Stop(Duration grace) { return body_->Stop(grace); }

}  // namespace berth::net
