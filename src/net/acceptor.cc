// SPDX-License-Identifier: Apache-2.0
#include "net/acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "net/url.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

// Connections taken before others have a turn.
constexpr int kAcceptBatch = 64;
constexpr Duration kOutOfDescriptorsPause = Duration::Millis(100);

bool IsOutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Acceptor::Acceptor(rt::AsioLoop& loop, int listener, Take take, Doors doors)
    : take_(std::move(take)),
      listener_(std::make_unique<Socket>(loop, listener)),
      address_(LocalAddress(listener)),
      accepting_(loop) {
  const auto where = ParseHostPort(address_, 0);
  port_ = where.ok() ? where->port : 0;
  if (doors == Doors::kOpen) open_.Set();
  accepting_.Spawn("net.accept", AcceptAll());
}

rt::Task<Status> Acceptor::Stop() {
  CO_TRY_STATUS(co_await accepting_.Close());
  listener_.reset();
  co_return OkStatus();
}

rt::Task<Status> Acceptor::AcceptAll() {
  CO_TRY_STATUS(co_await open_.Wait());
  for (;;) {
    CO_TRY_STATUS(co_await listener_->Readable());
    for (int taken = 0; taken < kAcceptBatch; ++taken) {
      const int fd = ::accept4(listener_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        take_(fd);
        continue;
      }
      if (errno == EAGAIN) break;
      if (IsOutOfResources(errno)) {
        LOG_WARNING("{}: accept: {}", address_, std::generic_category().message(errno));
        CO_TRY_STATUS(co_await rt::Sleep(kOutOfDescriptorsPause));
        break;
      }
      // Anything else is about that one connection, which was gone before it was taken.
    }
  }
}

}  // namespace berth::net
