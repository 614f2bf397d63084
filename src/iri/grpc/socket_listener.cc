// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/socket_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/seccomp.h"

namespace berth::iri {
namespace {

constexpr int kWaiting = 64;          // a host has one poollet, and a person now and then
constexpr int kNoDescriptorMs = 100;  // until some are free again
constexpr mode_t kForUs = 0600;
constexpr mode_t kForAll = 0666;

Status Failed(const std::string& path) {
  return Unavailable("socket " + path + ": " + std::string(std::strerror(errno)));
}

Status CheckWay(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat seen = {};
  if (stat(folder.c_str(), &seen) != 0) return Failed(path);
  if ((seen.st_mode & S_IXOTH) != 0) return OkStatus();
  return BadRequest("socket " + path + ": the users that are allowed cannot reach it; chmod o+x " +
                    folder);
}

// Of a process of our own user, which a guest's QEMU may be: who has broken out of a guest gets no
// further here, and in doubt it is one. Whom we have no number for is of another namespace of
// processes: guests are in ours.
std::string_view WhyNotOurs(pid_t pid) {
  if (pid == 0) return {};
  switch (ConfinementOf(pid)) {
    case Confinement::kNotMore: return {};
    case Confinement::kMore: return "it is more confined (seccomp) than we";
    case Confinement::kUnknown: break;
  }
  return "/proc does not show whether it is more confined (seccomp) than we";
}

}  // namespace

SocketListener::SocketListener(std::string path, std::vector<uid_t> allowed_uids)
    : path_(std::move(path)), allowed_uids_(std::move(allowed_uids)) {}

Result<std::unique_ptr<SocketListener>> SocketListener::Open(std::string path,
                                                             std::vector<uid_t> allowed_uids) {
  std::unique_ptr<SocketListener> listener(
      new SocketListener(std::move(path), std::move(allowed_uids)));
  TRY_STATUS(listener->Listen());
  return listener;
}

SocketListener::~SocketListener() {
  if (is_there_) unlink(path_.c_str());
  for (const int opened : {socket_, wake_}) {
    if (opened >= 0) close(opened);
  }
}

Status SocketListener::Listen() {
  if (!allowed_uids_.empty()) TRY_STATUS(CheckWay(path_));
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return Failed(path_);
  const int opened = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (opened < 0) return Failed(path_);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path_.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  if (bind(opened, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const Status failed = Failed(path_);
    close(opened);
    return failed;
  }
  socket_ = opened;
  is_there_ = true;
  // Nobody connects before it listens.
  if (chmod(path_.c_str(), allowed_uids_.empty() ? kForUs : kForAll) != 0) return Failed(path_);
  return listen(opened, kWaiting) == 0 ? OkStatus() : Failed(path_);
}

std::string_view SocketListener::WhyNot(pid_t pid, uid_t uid) const {
  if (uid == 0) return {};
  // Users that were named may confine themselves as they like.
  if (uid == geteuid()) return WhyNotOurs(pid);
  const bool is_allowed = std::ranges::find(allowed_uids_, uid) != allowed_uids_.end();
  return is_allowed ? "" : "it is not allowed";
}

void SocketListener::Take(int connection, const Accepted& accepted) const {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  const bool is_known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  const std::string_view why_not = is_known ? WhyNot(peer.pid, peer.uid) : "nobody knows it";
  if (why_not.empty()) {
    accepted(connection);
    return;
  }
  LOG_WARNING(
      "socket {}: process {} of user {} was refused: {}", path_, peer.pid, peer.uid, why_not);
  close(connection);
}

void SocketListener::Run(const Accepted& accepted) const {
  while (true) {
    pollfd wanted[] = {{.fd = socket_, .events = POLLIN, .revents = 0},
                       {.fd = wake_, .events = POLLIN, .revents = 0}};
    if (poll(std::data(wanted), std::size(wanted), -1) < 0 && errno != EINTR) return;
    if (wanted[1].revents != 0) return;
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      Take(connection, accepted);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      poll(&wanted[1], 1, kNoDescriptorMs);
    }
  }
}

void SocketListener::Stop() {
  if (!std::exchange(is_there_, false)) return;
  unlink(path_.c_str());
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

}  // namespace berth::iri
