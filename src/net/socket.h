// SPDX-License-Identifier: Apache-2.0
// A Socket is a non-blocking descriptor and the knowledge of when it is ready. Reading and writing
// are system calls of whoever owns it; asio is used for readiness only, so that a connection costs
// no buffers. On-loop only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/asio/asio_loop.h"
#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::net {

class Socket {
 public:
  // Takes the descriptor over and makes it non-blocking.
  Socket(rt::AsioLoop& loop, int fd);
  // Closes it. REQUIRES: nobody waits.
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Ok when the descriptor may be read (written) without blocking; ask again after EAGAIN. Timeout
  // once the deadline of that direction has passed; Cancelled.
  rt::Task<Status> Readable();
  rt::Task<Status> Writable();

  // Waits in progress and later ones end with Timeout at that time; nullopt: never. Cheap: moving a
  // deadline does not touch a timer.
  void SetReadDeadline(std::optional<Time> deadline);
  void SetWriteDeadline(std::optional<Time> deadline);

  // Calls fn, in a turn of its own, whenever the descriptor becomes readable while nobody waits for
  // that; after each call it must be asked for anew with RearmWatch(). An empty fn ends the watch.
  void WatchReadable(rt::Fn fn);
  void RearmWatch();

  int fd() const { return fd_; }
  rt::AsioLoop& loop() const { return loop_; }

 private:
  class State;
  struct Side {
    std::vector<rt::Leaf<Status>*> waiters;  // one, or two while TLS mixes the directions
    std::optional<Time> deadline;
    std::optional<Time> timer_due;
    rt::TimerId timer;
  };
  rt::Task<Status> Wait(Side* side);
  void Arm(Side& side);
  void ArmTimer(Side& side);
  void OnTimer(Side& side);
  void OnReady(Side& side);

  rt::AsioLoop& loop_;
  const int fd_;
  Side read_;
  Side write_;
  rt::Fn watch_;
  std::shared_ptr<State> state_;  // shared with asio's handlers, which may outlive us
};

// A connected TCP socket to a host and port; tries every address of the name. Unavailable names the
// host and the reason.
rt::Task<Result<int>> ConnectTcp(rt::AsioLoop* loop, std::string host, uint16_t port);
rt::Task<Result<int>> ConnectUnix(rt::AsioLoop* loop, std::string path);

// A listening TCP socket on a numeric address; port 0 lets the kernel choose.
Result<int> ListenTcp(const std::string& address, uint16_t port);
// The same in two steps: between them the port is taken, and who knocks is refused.
Result<int> BindTcp(const std::string& address, uint16_t port);
Status Listen(int fd);
// What every TCP connection of ours has: no Nagle delay, and probes that notice a silent peer
// within about a minute.
void ConfigureTcp(int fd);
// "127.0.0.1:4242" of this end, or of the other.
std::string LocalAddress(int fd);
std::string PeerAddress(int fd);

}  // namespace berth::net
