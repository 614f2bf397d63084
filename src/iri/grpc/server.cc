// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/server.h"

#include <grpcpp/impl/service_type.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "iri/grpc/endpoint.h"
#include "iri/grpc/serving.h"
#include "net/grpc_server.h"

namespace berth::iri {

class RuntimeServer::Body {
 public:
  Body(rt::Loop& loop, std::string path, const Runtimes& runtimes)
      : path_(std::move(path)), calls_(loop), watches_(loop) {
    if (runtimes.machine != nullptr) {
      services_.push_back(NewMachineService(calls_, *runtimes.machine));
    }
    if (runtimes.volume != nullptr) services_.push_back(NewVolumeService(calls_, *runtimes.volume));
    if (runtimes.bucket != nullptr) services_.push_back(NewBucketService(calls_, *runtimes.bucket));
    if (runtimes.host != nullptr) {
      services_.push_back(NewHostService(calls_, watches_, *runtimes.host));
    }
  }

  Status Listen() {
    std::vector<grpc::Service*> services;
    for (const auto& service : services_) services.push_back(service.get());
    if (services.empty()) return BadRequest("socket " + path_ + ": nothing to serve");
    TRY_STATUS(PrepareSocket(path_));
    TRY(server_, net::GrpcServer::Start("unix:" + path_, services));
    // The folder keeps others out until here.
    if (::chmod(path_.c_str(), S_IRUSR | S_IWUSR) != 0) {
      return Unavailable("socket " + path_ + ": " + std::strerror(errno));
    }
    return OkStatus();
  }

  const std::string& path() const { return path_; }

  rt::Task<Status> Stop(Duration grace) {
    watches_.Cancel();  // they would use up the grace
    if (server_ != nullptr) CO_TRY_STATUS(co_await server_->Stop(grace));
    CO_TRY_STATUS(co_await watches_.Close());
    co_return co_await calls_.Close();
  }

 private:
  const std::string path_;
  rt::TaskScope calls_;
  rt::TaskScope watches_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<net::GrpcServer> server_;
};

RuntimeServer::RuntimeServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
RuntimeServer::~RuntimeServer() = default;

Result<std::unique_ptr<RuntimeServer>> RuntimeServer::Start(rt::Loop& loop,
                                                            std::string path,
                                                            const Runtimes& runtimes) {
  auto body = std::make_unique<Body>(loop, std::move(path), runtimes);
  TRY_STATUS(body->Listen());
  return std::unique_ptr<RuntimeServer>(new RuntimeServer(std::move(body)));
}

const std::string& RuntimeServer::path() const { return body_->path(); }
rt::Task<Status> RuntimeServer::Stop(Duration grace) { return body_->Stop(grace); }

}  // namespace berth::iri
