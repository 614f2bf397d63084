// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/loopback_peer.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/strings.h"

namespace berth::app {
namespace {

// Columns of /proc/net/tcp, in words: sl local remote state queues timer retransmissions uid ...
constexpr size_t kLocal = 1;
constexpr size_t kRemote = 2;
constexpr size_t kState = 3;
constexpr size_t kUid = 7;
constexpr std::string_view kEstablished = "01";
constexpr uint64_t kUidMax = 0xffffffff;

// The address as the kernel prints it: its bytes as a number of this processor, then the port.
std::string Loopback(uint16_t port) {
  return fmt::format("{:08X}:{:04X}", htonl(INADDR_LOOPBACK), port);
}

std::optional<uid_t> OwnerIn(std::string_view line,
                             std::string_view local,
                             std::string_view remote) {
  if (!line.contains(local)) return std::nullopt;
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  if (words.size() <= kUid || words[kLocal] != local || words[kRemote] != remote ||
      words[kState] != kEstablished) {
    return std::nullopt;
  }
  const std::optional<uint64_t> uid = ParseUint(words[kUid]);
  if (!uid || *uid > kUidMax) return std::nullopt;
  return static_cast<uid_t>(*uid);
}

}  // namespace

std::optional<uid_t> LoopbackOwner(std::string_view table, uint16_t peer_port, uint16_t own_port) {
  for (const std::string_view line : Split(table, '\n')) {
    const auto owner = OwnerIn(line, Loopback(peer_port), Loopback(own_port));
    if (owner) return owner;
  }
  return std::nullopt;
}

std::optional<uid_t> LoopbackOwner(uint16_t peer_port, uint16_t own_port) {
  const std::string local = Loopback(peer_port);
  const std::string remote = Loopback(own_port);
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    const auto owner = OwnerIn(line, local, remote);
    if (owner) return owner;
  }
  return std::nullopt;
}

}  // namespace berth::app
