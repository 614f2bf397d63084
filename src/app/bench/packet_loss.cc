// SPDX-License-Identifier: Apache-2.0
#include "app/bench/packet_loss.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/strings.h"
#include "net/socket.h"

namespace berth::app {
namespace {

Status Failed(std::string_view call) {
  const int error = errno;
  return Unavailable("drop packets (" + std::string(call) + "): " + std::strerror(error));
}

bool IsTcp(int fd) {
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  return ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
         protocol == IPPROTO_TCP;
}

// "": whatever its ends are.
bool HasEnd(int socket, const std::string& address) {
  return address.empty() || net::LocalAddress(socket) == address ||
         net::PeerAddress(socket) == address;
}

Status DropFrom(const std::string& address) {
  std::error_code error;
  size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::optional<int64_t> number = ParseInt(entry.path().filename().string());
    const int fd = static_cast<int>(number.value_or(-1));
    if (fd < 0 || !IsTcp(fd) || !HasEnd(fd, address)) continue;
    TRY_STATUS(DropPacketsTo(fd));
    ++sockets;
  }
  if (error) return Unavailable("drop packets: /proc/self/fd: " + error.message());
  if (sockets == 0)
    return NotFound("drop packets: there is no TCP socket" +
                    (address.empty() ? "" : " of " + address));
  return OkStatus();
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

Status DropAllPackets() { return DropFrom(""); }

Status DropPacketsOf(const std::string& address) { return DropFrom(address); }

}  // namespace berth::app
