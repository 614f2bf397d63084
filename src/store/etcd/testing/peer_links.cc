// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/testing/peer_links.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "net/socket.h"
#include "store/etcd/testing/way.h"

namespace berth::store {
namespace {

// What is behind the colon of "0100007F:1F90".
uint16_t PortIn(std::string_view address, int base) {
  return static_cast<uint16_t>(
      std::stoul(std::string(address.substr(address.rfind(':') + 1)), nullptr, base));
}

// What the kernel calls the end at `from` of the connection to `to`; "" if there is none.
std::string SocketOf(uint16_t from, uint16_t to) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // its heading
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> word;
    for (std::string& each : word) words >> each;
    if (PortIn(word[1], 16) == from && PortIn(word[2], 16) == to) return "socket:[" + word[9] + "]";
  }
  return "";
}

bool HasOpen(pid_t process, const std::string& socket) {
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(at->path(), gone) == socket) return true;
  }
  return false;
}

}  // namespace

uint16_t PeerLinks::Add(uint16_t target) {
  Member& member = *members_.emplace_back(std::make_unique<Member>());
  member.target = target;
  const Result<int> listener = net::ListenTcp("127.0.0.1", 0);
  CHECK(listener.ok()) << listener.status();
  const auto take = [this, &member](int fd) {
    net::ConfigureTcp(fd);
    scope_.Spawn("etcd.link", Carry(&member, std::make_unique<net::PlainStream>(loop_, fd)));
  };
  member.acceptor = std::make_unique<net::Acceptor>(loop_, *listener, take);
  return member.acceptor->port();
}

PeerLinks::~PeerLinks() { CHECK(rt::RunTask(loop_, Close()).ok()); }

rt::Task<Status> PeerLinks::Close() {
  for (const auto& member : members_) CO_TRY_STATUS(co_await member->acceptor->Stop());
  co_return co_await scope_.Close();
}

void PeerLinks::Heal(size_t member) {
  members_[member]->is_cut = false;
  healed_.Set();
  healed_.Reset();
}

const PeerLinks::Member* PeerLinks::MakerOf(const net::Stream& near, const Member& to) const {
  const std::string socket = SocketOf(PortIn(near.peer_address(), 10), to.acceptor->port());
  for (const auto& member : members_) {
    if (member->pid != 0 && HasOpen(member->pid, socket)) return member.get();
  }
  return nullptr;
}

rt::Task<Status> PeerLinks::Carry(const Member* to, std::unique_ptr<net::Stream> near) {
  const Member* from = MakerOf(*near, *to);
  if (from == nullptr) co_return OkStatus();  // whoever hung up at once
  Way way{.is_cut = [from, to] { return from->is_cut || to->is_cut; }, .healed = &healed_};
  co_return co_await CarryBytes(&loop_, std::move(way), std::move(near), to->target);
}

}  // namespace berth::store
