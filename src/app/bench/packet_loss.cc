// SPDX-License-Identifier: Apache-2.0
#include "app/bench/packet_loss.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/strings.h"
#include "net/owned_fd.h"

namespace berth::app {
namespace {

Status Failed(std::string_view call) {
  const int error = errno;
  return Unavailable("drop packets (" + std::string(call) + "): " + std::strerror(error));
}

// glibc 2.36 declares these calls without the linkage of C.
template <class... Arguments>
int Call(long number, Arguments... arguments) {
  return static_cast<int>(::syscall(number, arguments...));
}

bool IsTcp(int fd) {
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  return ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
         protocol == IPPROTO_TCP;
}

}  // namespace

Status DropPacketsTo(int socket) {
  sock_filter nothing_passes = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{.len = 1, .filter = &nothing_passes};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0) {
    return OkStatus();
  }
  return Failed("SO_ATTACH_FILTER");
}

Status DropAllPacketsOf(pid_t pid) {
  const net::OwnedFd process(Call(SYS_pidfd_open, pid, 0));
  if (process.get() < 0) return Failed("pidfd_open");
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  std::error_code error;
  size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<int64_t> number = ParseInt(entry.path().filename().string());
    if (!number) continue;
    // The same socket as the process has: a filter is the socket's. Some are gone meanwhile.
    const net::OwnedFd copy(Call(SYS_pidfd_getfd, process.get(), *number, 0));
    if (copy.get() < 0 && errno == EBADF) continue;
    if (copy.get() < 0) return Failed("pidfd_getfd");
    if (!IsTcp(copy.get())) continue;
    TRY_STATUS(DropPacketsTo(copy.get()));
    ++sockets;
  }
  if (error) return Unavailable(folder + ": " + error.message());
  if (sockets == 0) return NotFound("drop packets: the process has no TCP socket");
  return OkStatus();
}

}  // namespace berth::app
