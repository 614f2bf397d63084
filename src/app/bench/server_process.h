// SPDX-License-Identifier: Apache-2.0
// A server of this very binary as a child process, in a folder of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/bench/child_process.h"
#include "base/result.h"
#include "base/time.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

class ServerProcess {
 public:
  // Starts `berth server` on the folder and returns once it is ready; `ready_ms` is how long that
  // took. Poollets find it at `gateway_port` of 127.0.0.1; 0: somewhere. `more` are further
  // arguments.
  static rt::Task<Result<std::unique_ptr<ServerProcess>>> Start(rt::AsioLoop& loop,
                                                                std::string folder,
                                                                uint16_t gateway_port = 0,
                                                                std::vector<std::string> more = {});

  Time started() const { return started_; }
  double ready_ms() const { return ready_ms_; }
  // Resident memory now.
  Result<double> RssMb() const { return process_.RssMb(); }
  Result<double> OwnRssMb() const { return process_.OwnRssMb(); }
  Result<double> CpuSeconds() const { return process_.CpuSeconds(); }
  // A client with the administrator's certificate; at most `connections` at once.
  Result<std::unique_ptr<net::HttpClient>> NewClient(size_t connections) const {
    return NewClientOn(loop_, connections);
  }
  Result<std::unique_ptr<net::HttpClient>> NewClientOn(rt::AsioLoop& loop,
                                                       size_t connections) const;
  // Where it serves HTTPS, on 127.0.0.1.
  Result<uint16_t> port() const;
  // The certificate of its authority.
  const std::string& authority_pem() const { return authority_pem_; }
  // SIGTERM and wait.
  Status Stop() { return process_.Stop(); }
  // SIGKILL and wait.
  void Kill() { process_.Kill(); }
  void Pause() { process_.Pause(); }
  void Resume() { process_.Resume(); }
  const std::string& url() const { return url_; }

 private:
  ServerProcess(rt::AsioLoop& loop, std::string folder, ChildProcess process)
      : loop_(loop), folder_(std::move(folder)), process_(std::move(process)) {}
  Status Connect();

  rt::AsioLoop& loop_;
  std::string folder_;
  ChildProcess process_;
  Time started_;
  double ready_ms_ = 0;
  std::string url_;
  std::string authority_pem_;
  std::shared_ptr<const net::TlsContext> tls_;
};

// A port of 127.0.0.1 that is free now.
Result<uint16_t> FindFreePort();

}  // namespace berth::app
