// SPDX-License-Identifier: Apache-2.0
#include "net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/check.h"
#include "base/strings.h"
#include "net/address_policy.h"
#include "net/owned_fd.h"
#include "net/url.h"
#include "rt/asio/asio_loop.h"

namespace berth::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kListenBacklog = 4096;

std::string ErrnoText(int error) { return boost::system::system_category().message(error); }

std::string FormatAddress(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return FormatHostPort(text.data(), ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return FormatHostPort(text.data(), ntohs(v6.sin6_port));
  }
  return "unix";
}

rt::Task<Result<int>> Connect(rt::AsioLoop* loop,
                              int domain,
                              const sockaddr* address,
                              socklen_t size) {
  const int raw = ::socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (raw < 0) co_return Unavailable("socket: " + ErrnoText(errno));
  // The Socket owns the descriptor while it waits; a copy of it leaves.
  Socket socket(*loop, raw);
  if (::connect(raw, address, size) != 0) {
    if (errno != EINPROGRESS) co_return Unavailable(ErrnoText(errno));
    CO_TRY_STATUS(co_await socket.Writable());
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(raw, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) co_return Unavailable(ErrnoText(error));
  }
  const int copy = ::fcntl(raw, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) co_return Unavailable("dup: " + ErrnoText(errno));
  co_return copy;
}

using Endpoints = std::vector<tcp::endpoint>;

// Shared with the resolver, whose answer may come after the asking task was cancelled.
struct Resolution {
  rt::Leaf<Result<Endpoints>>* waiter = nullptr;
};

rt::Task<Result<Endpoints>> Resolve(rt::AsioLoop* loop, std::string host, uint16_t port) {
  boost::system::error_code error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error) co_return Endpoints{tcp::endpoint(literal, port)};
  auto resolution = std::make_shared<Resolution>();
  rt::Leaf<Result<Endpoints>> leaf;
  resolution->waiter = &leaf;
  tcp::resolver resolver(loop->io_context());
  resolver.async_resolve(host,
                         std::to_string(port),
                         [loop, resolution](const boost::system::error_code& failure,
                                            const tcp::resolver::results_type& found) {
                           if (resolution->waiter == nullptr) return;
                           Result<Endpoints> answer = Endpoints();
                           if (failure) {
                             answer = Unavailable(failure.message());
                           } else {
                             for (const auto& entry : found) answer->push_back(entry.endpoint());
                           }
                           loop->Turn("net.resolve",
                                      [&] { resolution->waiter->Complete(std::move(answer)); });
                         });
  Result<Endpoints> answer = co_await leaf;
  resolution->waiter = nullptr;
  co_return answer;
}

}  // namespace

// What asio's handlers refer to.
class Socket::State {
 public:
  State(Socket& socket, asio::io_context& io, int fd) : socket(&socket), descriptor(io, fd) {}
  Socket* socket;  // null once it is destroyed
  asio::posix::stream_descriptor descriptor;
  bool read_armed = false;
  bool write_armed = false;
};

Socket::Socket(rt::AsioLoop& loop, int fd) : loop_(loop), fd_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  CHECK(flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) << ErrnoText(errno);
  state_ = std::make_shared<State>(*this, loop.io_context(), fd);
}

Socket::~Socket() {
  CHECK(read_.waiters.empty() && write_.waiters.empty()) << "a socket is closed under a waiter";
  if (read_.timer_due.has_value()) loop_.CancelTimer(read_.timer);
  if (write_.timer_due.has_value()) loop_.CancelTimer(write_.timer);
  state_->socket = nullptr;
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);  // ends what is armed
}

rt::Task<Status> Socket::Readable() { return Wait(&read_); }
rt::Task<Status> Socket::Writable() { return Wait(&write_); }

rt::Task<Status> Socket::Wait(Side* side) {
  if (side->deadline.has_value() && loop_.Now() >= *side->deadline) co_return Timeout("time is up");
  rt::Leaf<Status> ready;
  side->waiters.push_back(&ready);
  Arm(*side);
  ArmTimer(*side);
  Status status = co_await ready;
  std::erase(side->waiters, &ready);
  co_return status;
}

// At most one wait per direction is with asio. It stays there when its waiter is cancelled and
// serves the next one: asio can only cancel both directions at once.
void Socket::Arm(Side& side) {
  const bool reading = &side == &read_;
  bool& armed = reading ? state_->read_armed : state_->write_armed;
  if (armed) return;
  armed = true;
  state_->descriptor.async_wait(
      reading ? asio::posix::descriptor_base::wait_read : asio::posix::descriptor_base::wait_write,
      [state = state_, reading](const boost::system::error_code&) {
        (reading ? state->read_armed : state->write_armed) = false;
        Socket* socket = state->socket;
        if (socket == nullptr) return;
        socket->loop_.Turn("net.ready", [socket, reading] {
          socket->OnReady(reading ? socket->read_ : socket->write_);
        });
      });
}

void Socket::OnReady(Side& side) {
  for (rt::Leaf<Status>* waiter : side.waiters) waiter->Complete(OkStatus());
  if (side.waiters.empty() && &side == &read_ && watch_) watch_();
}

void Socket::SetReadDeadline(std::optional<Time> deadline) {
  read_.deadline = deadline;
  if (!read_.waiters.empty()) ArmTimer(read_);
}

void Socket::SetWriteDeadline(std::optional<Time> deadline) {
  write_.deadline = deadline;
  if (!write_.waiters.empty()) ArmTimer(write_);
}

// A timer that comes too early looks at the deadline again; so only an earlier deadline needs a new
// timer.
void Socket::ArmTimer(Side& side) {
  if (!side.deadline.has_value()) return;
  if (side.timer_due.has_value()) {
    if (*side.timer_due <= *side.deadline) return;
    loop_.CancelTimer(side.timer);
  }
  side.timer_due = side.deadline;
  side.timer =
      loop_.After("net.deadline", *side.deadline - loop_.Now(), [this, &side] { OnTimer(side); });
}

void Socket::OnTimer(Side& side) {
  side.timer_due.reset();
  if (side.waiters.empty() || !side.deadline.has_value()) return;
  if (loop_.Now() < *side.deadline) {
    ArmTimer(side);
  } else {
    for (rt::Leaf<Status>* waiter : side.waiters) waiter->Complete(Timeout("time is up"));
  }
}

void Socket::WatchReadable(rt::Fn fn) {
  watch_ = std::move(fn);
  if (watch_) Arm(read_);
}

void Socket::RearmWatch() {
  if (watch_) Arm(read_);
}

rt::Task<Result<int>> ConnectTcp(rt::AsioLoop* loop, std::string host, uint16_t port) {
  return ConnectAllowed(loop, std::move(host), port, AddressPolicy());
}

rt::Task<Result<int>> ConnectAllowed(rt::AsioLoop* loop,
                                     std::string host,
                                     uint16_t port,
                                     AddressPolicy policy) {
  const std::string what = "connect to " + FormatHostPort(host, port);
  Result<Endpoints> endpoints = co_await Resolve(loop, host, port);
  if (!endpoints.ok()) co_return endpoints.status().Wrap(what);
  Status last = Unavailable("the name has no address").Wrap(what);
  for (const tcp::endpoint& endpoint : *endpoints) {
    if (policy) {
      const Status allowed = policy(endpoint.address().to_string());
      if (!allowed.ok()) {
        last = allowed;
        continue;
      }
    }
    Result<int> fd = co_await Connect(loop,
                                      endpoint.protocol().family(),
                                      endpoint.data(),
                                      static_cast<socklen_t>(endpoint.size()));
    if (fd.ok()) {
      ConfigureTcp(*fd);
      co_return fd;
    }
    last = fd.status().Wrap(what);
    if (last.Is(Reason::kCancelled)) break;
  }
  co_return last;
}

rt::Task<Result<int>> ConnectUnix(rt::AsioLoop* loop, std::string path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    co_return BadRequest("unix socket path " + Quote(path) + " has " + std::to_string(path.size()) +
                         " characters, the limit is 107");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Result<int> fd =
      co_await Connect(loop, AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (!fd.ok()) co_return fd.status().Wrap("connect to " + path);
  co_return fd;
}

Result<int> ListenTcp(const std::string& address, uint16_t port) {
  TRY(const int bound, BindTcp(address, port));
  OwnedFd fd(bound);
  TRY_STATUS(Listen(fd.get()));
  return fd.Release();
}

Status Listen(int fd) {
  if (::listen(fd, kListenBacklog) == 0) return OkStatus();
  return Unavailable("listen on " + LocalAddress(fd) + ": " + ErrnoText(errno));
}

Result<int> BindTcp(const std::string& address, uint16_t port) {
  const std::string where = FormatHostPort(address, port);
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error) return BadRequest("listen on " + where + ": not a numeric address");
  const tcp::endpoint endpoint(parsed, port);
  OwnedFd fd(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Unavailable("listen on " + where + ": " + ErrnoText(errno));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
    return Unavailable("listen on " + where + ": " + ErrnoText(errno));
  }
  return fd.Release();
}

void ConfigureTcp(int fd) {
  const int on = 1;
  const int idle_seconds = 30;
  const int interval_seconds = 10;
  const int probes = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

std::string LocalAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return FormatAddress(address);
}

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return FormatAddress(address);
}

}  // namespace berth::net
