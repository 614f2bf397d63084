// SPDX-License-Identifier: Apache-2.0
// A child process with an H2Server whose one stream sends every message back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/tls.h"

namespace berth::app {

inline constexpr char kEchoMethod[] = "/berth.bench.v1.Echo/Chat";

class EchoProcess {
 public:
  // Forks; the child serves until its parent lets go. REQUIRES: no threads.
  static Result<std::unique_ptr<EchoProcess>> Start(const net::TlsServerOptions& tls);
  ~EchoProcess();
  EchoProcess(const EchoProcess&) = delete;
  EchoProcess& operator=(const EchoProcess&) = delete;

  uint16_t port() const { return port_; }
  // Memory that is its own, and computing time so far.
  Result<double> AnonymousKb() const;
  Result<double> CpuMs() const;

 private:
  EchoProcess(pid_t pid, int hold, uint16_t port) : pid_(pid), hold_(hold), port_(port) {}

  const pid_t pid_;
  const int hold_;  // the child ends when this closes
  const uint16_t port_;
};

}  // namespace berth::app
