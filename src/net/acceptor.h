// SPDX-License-Identifier: Apache-2.0
// An Acceptor takes connections off a listening socket and hands them to a server. Out of
// descriptors it pauses and goes on. On-loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/socket.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class Acceptor {
 public:
  // Gets a new, non-blocking descriptor and owns it from then on.
  using Take = std::function<void(int fd)>;

  // kWhenOpened: connections wait with the kernel until Open().
  enum class Doors : uint8_t { kOpen, kWhenOpened };

  // Takes `listener` over.
  Acceptor(rt::AsioLoop& loop, int listener, Take take, Doors doors = Doors::kOpen);
  // REQUIRES: Stop() was awaited.
  ~Acceptor() = default;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // "127.0.0.1:35071": where it listens.
  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }

  void Open() { open_.Set(); }
  // Stops listening; nothing is taken after that.
  rt::Task<Status> Stop();

 private:
  rt::Task<Status> AcceptAll();

  const Take take_;
  std::unique_ptr<Socket> listener_;
  std::string address_;
  uint16_t port_ = 0;
  rt::Event open_;
  rt::TaskScope accepting_;
};

}  // namespace berth::net
