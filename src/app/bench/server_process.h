// SPDX-License-Identifier: Apache-2.0
// A server of this very binary as a child process, in a folder of its own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

class ServerProcess {
 public:
  // Starts `berth server` on the folder and returns once it is ready; `ready_ms` is how long that
  // took.
  static rt::Task<Result<std::unique_ptr<ServerProcess>>> Start(rt::AsioLoop& loop,
                                                                std::string folder);
  // Ends the process if Stop() was not called.
  ~ServerProcess();

  double ready_ms() const { return ready_ms_; }
  // Resident memory now.
  Result<double> RssMb() const;
  // A client with the administrator's certificate; at most `connections` at once.
  Result<std::unique_ptr<net::HttpClient>> NewClient(size_t connections) const;
  // SIGTERM and wait.
  Status Stop();

 private:
  ServerProcess(rt::AsioLoop& loop, std::string folder, pid_t pid)
      : loop_(loop), folder_(std::move(folder)), pid_(pid) {}
  Status Connect();

  rt::AsioLoop& loop_;
  std::string folder_;
  pid_t pid_;
  double ready_ms_ = 0;
  std::string url_;
  std::shared_ptr<const net::TlsContext> tls_;
};

}  // namespace berth::app
