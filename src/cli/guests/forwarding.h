// SPDX-License-Identifier: Apache-2.0
// Forwarding listens on ports of this computer; every connection to one of them becomes a WebSocket
// to a port of a guest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/guests/guest_link.h"
#include "net/acceptor.h"
#include "net/stream.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::cli {

struct ForwardedPort {
  uint16_t local = 0;  // 0: the kernel chooses
  uint16_t remote = 0;
};
// "8080:80", ":80" (any local port), "80" (the same on both ends).
Result<ForwardedPort> ParseForwardedPort(const std::string& text);

class Forwarding {
 public:
  // Connections at once; a browser opens six for a page.
  static constexpr size_t kConnectionsMax = 256;

  // `err` gets a line for every connection that cannot be carried. Everything outlives this.
  Forwarding(GuestLink& link, std::ostream& err) : link_(link), err_(err), scope_(link.loop()) {}
  // REQUIRES: Stop() was awaited.
  ~Forwarding() = default;

  // Where it listens: "127.0.0.1:8080". Unavailable if the port is taken. On-loop only.
  Result<std::string> Listen(const std::string& address, ForwardedPort port);
  rt::Task<Status> Stop();

 private:
  rt::Task<Status> Carry(int fd, uint16_t remote);
  rt::Task<Status> CarryOver(net::Stream* local, uint16_t remote);
  static rt::Task<Status> ToGuest(net::Stream* local, net::WebSocket* socket, rt::Event* over);
  rt::Task<Status> FromGuest(net::WebSocket* socket, net::Stream* local, rt::Event* over);

  GuestLink& link_;
  std::ostream& err_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
  rt::TaskScope scope_;
};

}  // namespace berth::cli
