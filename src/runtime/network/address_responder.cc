// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/address_responder.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "runtime/network/dhcp4.h"

namespace berth::runtime {
namespace {

// What an Ethernet without jumbo frames carries; longer ones are cut, and then not understood.
constexpr size_t kFrameBytesMax = 2048;
constexpr int kReceiveBufferBytes = 64 << 10;
constexpr int kTickMillis = 100;
constexpr int kEventsAtOnce = 16;
// Names in epoll of what is no port.
constexpr uint64_t kStopId = 0;
constexpr uint64_t kTickId = 1;
constexpr uint64_t kFirstPortId = 2;

Status Failed(std::string_view doing) {
  const std::string text = std::string(doing) + ": " + std::strerror(errno);
  return errno == EPERM ? Forbidden(text + " (CAP_NET_RAW is needed)") : Unavailable(text);
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// In the kernel, so that other traffic of a guest does not wake us: datagrams to DHCP servers, if
// they are not our own. Targets are counted from the next line.
constexpr uint32_t kPacketType = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
constexpr sock_filter Load(uint16_t size, uint32_t at) {
  return {.code = static_cast<uint16_t>(BPF_LD | BPF_ABS | size), .jt = 0, .jf = 0, .k = at};
}
constexpr sock_filter IfEqual(uint32_t value, uint8_t yes, uint8_t no) {
  return {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = yes, .jf = no, .k = value};
}
constexpr std::array<sock_filter, 11> kFilter = {{
    /*  0 */ Load(BPF_B, kPacketType),
    /*  1 */ IfEqual(PACKET_OUTGOING, 8, 0),
    /*  2 */ Load(BPF_H, 12),
    /*  3 */ IfEqual(kEtherTypeIp, 0, 6),
    /*  4 */ Load(BPF_B, 23),
    /*  5 */ IfEqual(kProtocolUdp, 0, 4),
    /*  6 */ {.code = BPF_LDX | BPF_B | BPF_MSH, .jt = 0, .jf = 0, .k = 14},
    /*  7 */ {.code = BPF_LD | BPF_H | BPF_IND, .jt = 0, .jf = 0, .k = 16},
    /*  8 */ IfEqual(67, 0, 1),
    /*  9 */ {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = kFrameBytesMax},
    /* 10 */ {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0},
}};

// Hears nothing until its filter is in place.
Result<Fd> ListenAt(int link_index) {
  Fd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return Failed("open a packet socket");
  sock_fprog program = {.len = static_cast<uint16_t>(kFilter.size()),
                        .filter = const_cast<sock_filter*>(kFilter.data())};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return Failed("filter a packet socket");
  }
  const int room = kReceiveBufferBytes;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  sockaddr_ll at = {};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);  // all: before the bridge takes it
  at.sll_ifindex = link_index;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return Failed("listen at link " + std::to_string(link_index));
  }
  return fd;
}

}  // namespace

std::optional<std::string> AnswerFrame(std::string_view frame, const NetworkPort& port) {
  const std::optional<Dhcp4Query> query = ParseDhcp4(frame);
  return query.has_value() ? AnswerDhcp4(*query, port) : std::nullopt;
}

class AddressResponder::Body {
 public:
  Status Open() {
    const Fd probe(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));  // hears nothing
    if (probe.get() < 0) return Failed("open a packet socket");
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    stop_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    tick_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (epoll_.get() < 0 || stop_.get() < 0 || tick_.get() < 0) return Failed("epoll");
    TRY_STATUS(Watch(EPOLL_CTL_ADD, stop_.get(), kStopId, EPOLLIN));
    return Watch(EPOLL_CTL_ADD, tick_.get(), kTickId, EPOLLIN);
  }

  Status Add(const NetworkPort& port, int link_index) {
    const MutexLock lock(mutex_);
    const auto known = ids_.find(port.tap);
    if (known != ids_.end()) {
      Listener& listener = listeners_.at(known->second);
      if (listener.link_index == link_index) {
        listener.port = port;
        return OkStatus();
      }
      Forget(port.tap);
    }
    TRY(Fd socket, ListenAt(link_index));
    const uint64_t id = next_id_++;
    TRY_STATUS(Watch(EPOLL_CTL_ADD, socket.get(), id, EPOLLIN));
    ids_[port.tap] = id;
    listeners_.emplace(
        id, Listener{.port = port, .link_index = link_index, .socket = std::move(socket)});
    return OkStatus();
  }

  void Remove(const std::string& tap) {
    const MutexLock lock(mutex_);
    Forget(tap);
  }

  Status Serve() {
    std::array<epoll_event, kEventsAtOnce> events;
    for (;;) {
      const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, -1);
      if (count < 0 && errno != EINTR) return Failed("wait for guests");
      for (int i = 0; i < count; ++i) {
        const uint64_t id = events[static_cast<size_t>(i)].data.u64;
        if (id == kStopId) return OkStatus();
        const MutexLock lock(mutex_);
        if (id == kTickId) {
          HearAgain();
        } else {
          Hear(id);
        }
      }
    }
  }

  void Stop() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof one);
  }

 private:
  struct Listener {
    NetworkPort port;
    int link_index = 0;
    Fd socket;
    unsigned heard = 0;  // since the last tick
  };

  Status Watch(int operation, int fd, uint64_t id, uint32_t events) const {
    epoll_event event = {.events = events, .data = {.u64 = id}};
    return epoll_ctl(epoll_.get(), operation, fd, &event) == 0 ? OkStatus() : Failed("epoll_ctl");
  }

  void Forget(const std::string& tap) REQUIRES(mutex_) {
    const auto known = ids_.find(tap);
    if (known == ids_.end()) return;
    listeners_.erase(known->second);  // closed, and with that out of epoll
    ids_.erase(known);
  }

  void Hear(uint64_t id) REQUIRES(mutex_) {
    const auto found = listeners_.find(id);
    if (found == listeners_.end()) return;  // removed since
    Listener& listener = found->second;
    std::array<char, kFrameBytesMax> buffer;
    while (listener.heard < kFramesMax) {
      const ssize_t count = recv(listener.socket.get(), buffer.data(), buffer.size(), MSG_TRUNC);
      if (count < 0) return;  // nothing more, or the link went down
      ++listener.heard;
      StartTick();
      if (static_cast<size_t>(count) > buffer.size()) continue;
      const std::string_view frame(buffer.data(), static_cast<size_t>(count));
      const std::optional<std::string> answer = AnswerFrame(frame, listener.port);
      if (!answer.has_value()) continue;
      // A guest that does not take its answer asks again.
      [[maybe_unused]] const ssize_t sent =
          send(listener.socket.get(), answer->data(), answer->size(), MSG_DONTWAIT);
    }
    // Until the tick the kernel drops what does not fit into its buffer.
    [[maybe_unused]] const Status muted = Watch(EPOLL_CTL_MOD, listener.socket.get(), id, 0);
  }

  void StartTick() REQUIRES(mutex_) {
    if (std::exchange(is_ticking_, true)) return;
    constexpr long kNanosPerMilli = 1'000'000;
    const itimerspec once = {.it_interval = {},
                             .it_value = {.tv_sec = 0, .tv_nsec = kTickMillis * kNanosPerMilli}};
    timerfd_settime(tick_.get(), 0, &once, nullptr);
  }

  void HearAgain() REQUIRES(mutex_) {
    uint64_t ticks = 0;
    if (read(tick_.get(), &ticks, sizeof ticks) != sizeof ticks) return;
    is_ticking_ = false;
    for (auto& [id, listener] : listeners_) {
      const bool was_muted = listener.heard >= kFramesMax;
      listener.heard = 0;
      if (!was_muted) continue;
      [[maybe_unused]] const Status heard =
          Watch(EPOLL_CTL_MOD, listener.socket.get(), id, EPOLLIN);
    }
  }

  Fd epoll_;
  Fd stop_;
  Fd tick_;
  Mutex mutex_;
  bool is_ticking_ GUARDED_BY(mutex_) = false;
  uint64_t next_id_ GUARDED_BY(mutex_) = kFirstPortId;
  std::map<std::string, uint64_t> ids_ GUARDED_BY(mutex_);  // by tap
  std::map<uint64_t, Listener> listeners_ GUARDED_BY(mutex_);
};

AddressResponder::AddressResponder(std::unique_ptr<Body> body) : body_(std::move(body)) {}
AddressResponder::~AddressResponder() = default;

Result<std::unique_ptr<AddressResponder>> AddressResponder::Make() {
  auto body = std::make_unique<Body>();
  TRY_STATUS(body->Open());
  return std::unique_ptr<AddressResponder>(new AddressResponder(std::move(body)));
}

Status AddressResponder::Add(const NetworkPort& port, int link_index) {
  return body_->Add(port, link_index);
}
void AddressResponder::Remove(const std::string& tap) { body_->Remove(tap); }
Status AddressResponder::Serve() { return body_->Serve(); }
void AddressResponder::Stop() { body_->Stop(); }

}  // namespace berth::runtime
