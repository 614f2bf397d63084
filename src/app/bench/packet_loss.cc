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
#include <system_error>
#include <vector>

#include "base/strings.h"

namespace berth::app {
namespace {

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
  return Unavailable(std::string("drop packets (SO_ATTACH_FILTER): ") + std::strerror(errno));
}

Status DropAllPackets() {
  std::error_code error;
  std::vector<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::optional<int64_t> fd = ParseInt(entry.path().filename().string());
    if (fd && IsTcp(static_cast<int>(*fd))) sockets.push_back(static_cast<int>(*fd));
  }
  if (error) return Unavailable("/proc/self/fd: " + error.message());
  if (sockets.empty()) return NotFound("drop packets: the process has no TCP socket");
  for (const int socket : sockets) TRY_STATUS(DropPacketsTo(socket));
  return OkStatus();
}

}  // namespace berth::app
