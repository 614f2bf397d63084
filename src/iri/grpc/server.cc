// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/server.h"

#include <grpcpp/impl/service_type.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "iri/grpc/endpoint.h"
#include "iri/grpc/serving.h"
#include "iri/grpc/socket_listener.h"
#include "net/grpc_server.h"
#include "rt/thread_pool.h"

namespace berth::iri {

class RuntimeServer::Body {
 public:
  Body(rt::Loop& loop, std::string path, const Runtimes& runtimes)
      : path_(std::move(path)), accepting_(loop), calls_(loop), watches_(loop) {
    if (runtimes.machine != nullptr) {
      services_.push_back(NewMachineService(calls_, *runtimes.machine));
    }
    if (runtimes.volume != nullptr) services_.push_back(NewVolumeService(calls_, *runtimes.volume));
    if (runtimes.bucket != nullptr) services_.push_back(NewBucketService(calls_, *runtimes.bucket));
    if (runtimes.host != nullptr) {
      services_.push_back(NewHostService(calls_, watches_, *runtimes.host));
    }
  }

  Status Listen(std::vector<uid_t> allowed_uids) {
    std::vector<grpc::Service*> services;
    for (const auto& service : services_) services.push_back(service.get());
    if (services.empty()) return BadRequest("socket " + path_ + ": nothing to serve");
    // Beside root's sockets are files of guests (/run/berth), to which QEMU comes as another user.
    const bool is_way = !allowed_uids.empty() || geteuid() == 0;
    const mode_t folder_mode = is_way ? S_IRWXU | S_IXGRP | S_IXOTH : S_IRWXU;
    TRY_STATUS(PrepareSocket(path_, folder_mode));
    TRY(listener_, SocketListener::Open(path_, std::move(allowed_uids)));
    TRY(server_, net::GrpcServer::StartWithoutPort(services));
    accepting_.Spawn("iri.accept", Accept());
    return OkStatus();
  }

  const std::string& path() const { return path_; }

  rt::Task<Status> Stop(Duration grace) {
    if (listener_ != nullptr) listener_->Stop();
    CO_TRY_STATUS(co_await accepting_.Close());
    watches_.Cancel();  // they would use up the grace
    if (server_ != nullptr) CO_TRY_STATUS(co_await server_->Stop(grace));
    CO_TRY_STATUS(co_await watches_.Close());
    co_return co_await calls_.Close();
  }

 private:
  rt::Task<Status> Accept() {
    const auto accepted = [this](int connection) { server_->Add(connection); };
    const auto run = [this, accepted] {
      listener_->Run(accepted);
      return OkStatus();
    };
    co_return co_await thread_.Run("iri.accept", run);
  }

  const std::string path_;
  rt::ThreadPool thread_{{.threads = 1, .queue_max = 1, .name = "iri-accept"}};
  rt::TaskScope accepting_;
  rt::TaskScope calls_;
  rt::TaskScope watches_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<net::GrpcServer> server_;
  std::unique_ptr<SocketListener> listener_;
};

RuntimeServer::RuntimeServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
RuntimeServer::~RuntimeServer() = default;

Result<std::unique_ptr<RuntimeServer>> RuntimeServer::Start(rt::Loop& loop,
                                                            std::string path,
                                                            const Runtimes& runtimes,
                                                            std::vector<uid_t> allowed_uids) {
  auto body = std::make_unique<Body>(loop, std::move(path), runtimes);
  TRY_STATUS(body->Listen(std::move(allowed_uids)));
  return std::unique_ptr<RuntimeServer>(new RuntimeServer(std::move(body)));
}

const std::string& RuntimeServer::path() const { return body_->path(); }
rt::Task<Status> RuntimeServer::Stop(Duration grace) { return body_->Stop(grace); }

}  // namespace berth::iri
