// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/netlink.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"

namespace berth::runtime {
namespace {

constexpr size_t kAlign = 4;
// What the kernel puts into one datagram of a list.
constexpr size_t kDatagramBytesMax = size_t{64} << 10;
constexpr int kAnswerSeconds = 10;

size_t Aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

template <class T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A copy, so that nothing has to be aligned.
template <class T>
std::optional<T> ReadAs(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Status Failed(std::string_view doing) {
  return Unavailable(std::string(doing) + ": " + std::strerror(errno));
}

void Append(std::string& to, std::string_view value) {
  to += value;
  to.resize(Aligned(to.size()), '\0');
}

}  // namespace

LinkRequest::LinkRequest(uint16_t type, unsigned flags, const ifinfomsg& link) {
  nlmsghdr header = {};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  Append(bytes_, BytesOf(header));
  Append(bytes_, BytesOf(link));
}

LinkRequest& LinkRequest::Raw(uint16_t type, std::string_view value) {
  const nlattr header = {.nla_len = static_cast<uint16_t>(sizeof(nlattr) + value.size()),
                         .nla_type = type};
  Append(bytes_, BytesOf(header));
  Append(bytes_, value);
  return *this;
}
LinkRequest& LinkRequest::Text(uint16_t type, std::string_view value) {
  return Raw(type, std::string(value) + '\0');
}
LinkRequest& LinkRequest::U32(uint16_t type, uint32_t value) { return Raw(type, BytesOf(value)); }
LinkRequest& LinkRequest::U8(uint16_t type, uint8_t value) { return Raw(type, BytesOf(value)); }

LinkRequest& LinkRequest::Open(uint16_t type) {
  const auto at = static_cast<uint16_t>(bytes_.size());
  open_ += BytesOf(at);
  return Raw(type, "");
}

LinkRequest& LinkRequest::Close() {
  CHECK(!open_.empty());
  const auto at =
      *ReadAs<uint16_t>(std::string_view(open_).substr(open_.size() - sizeof(uint16_t)));
  open_.resize(open_.size() - sizeof(uint16_t));
  const auto length = static_cast<uint16_t>(bytes_.size() - at);
  std::memcpy(bytes_.data() + at, &length, sizeof length);
  return *this;
}

std::string LinkRequest::Bytes(uint32_t sequence) const {
  CHECK(open_.empty());
  std::string bytes = bytes_;
  auto header = *ReadAs<nlmsghdr>(bytes);
  header.nlmsg_len = static_cast<uint32_t>(bytes.size());
  header.nlmsg_seq = sequence;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

void EachAttribute(std::string_view attributes, const AttributeFn& fn) {
  constexpr auto kTypeMask = static_cast<uint16_t>(NLA_TYPE_MASK);
  for (;;) {
    const auto header = ReadAs<nlattr>(attributes);
    if (!header.has_value() || header->nla_len < sizeof(nlattr) ||
        header->nla_len > attributes.size()) {
      return;
    }
    const std::string_view value =
        attributes.substr(sizeof(nlattr), header->nla_len - sizeof(nlattr));
    fn(static_cast<uint16_t>(header->nla_type & kTypeMask), value);
    attributes.remove_prefix(std::min(Aligned(header->nla_len), attributes.size()));
  }
}

Result<RouteSocket> RouteSocket::Open() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return Failed("open a socket of rtnetlink");
  RouteSocket opened(fd);
  const timeval limit = {.tv_sec = kAnswerSeconds, .tv_usec = 0};
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
    return Failed("set a limit for rtnetlink");
  }
  return opened;
}

RouteSocket::RouteSocket(RouteSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), sequence_(other.sequence_) {}
RouteSocket& RouteSocket::operator=(RouteSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(sequence_, other.sequence_);
  return *this;
}
RouteSocket::~RouteSocket() {
  if (fd_ >= 0) close(fd_);
}

Status RouteSocket::Send(const LinkRequest& request) {
  const std::string bytes = request.Bytes(++sequence_);
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent = sendto(fd_,
                              bytes.data(),
                              bytes.size(),
                              0,
                              reinterpret_cast<const sockaddr*>(&kernel),
                              sizeof kernel);
  return sent == static_cast<ssize_t>(bytes.size()) ? OkStatus() : Failed("ask rtnetlink");
}

Result<std::string> RouteSocket::Receive() const {
  std::string bytes(kDatagramBytesMax, '\0');
  for (;;) {
    sockaddr_nl from = {};
    socklen_t from_bytes = sizeof from;
    const ssize_t count = recvfrom(
        fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("hear rtnetlink");
    if (from.nl_pid != 0) continue;  // only the kernel is believed
    bytes.resize(static_cast<size_t>(count));
    return bytes;
  }
}

Result<int> RouteSocket::Ask(const LinkRequest& request) {
  TRY_STATUS(Send(request));
  for (;;) {
    TRY(const std::string bytes, Receive());
    const auto header = ReadAs<nlmsghdr>(bytes);
    if (!header.has_value() || header->nlmsg_seq != sequence_) continue;  // of an earlier question
    const auto error = ReadAs<nlmsgerr>(std::string_view(bytes).substr(sizeof(nlmsghdr)));
    if (header->nlmsg_type == NLMSG_ERROR && error.has_value()) return -error->error;
  }
}

Status RouteSocket::EachLink(const LinkFn& fn) {
  TRY_STATUS(Send(LinkRequest(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{})));
  for (;;) {
    TRY(const std::string bytes, Receive());
    std::string_view left = bytes;
    for (;;) {
      const auto header = ReadAs<nlmsghdr>(left);
      if (!header.has_value() || header->nlmsg_len < sizeof(nlmsghdr) ||
          header->nlmsg_len > left.size()) {
        break;
      }
      const std::string_view body =
          left.substr(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
      left.remove_prefix(std::min(Aligned(header->nlmsg_len), left.size()));
      if (header->nlmsg_seq != sequence_) continue;
      if (header->nlmsg_type == NLMSG_DONE) return OkStatus();
      if (header->nlmsg_type == NLMSG_ERROR) {
        const auto error = ReadAs<nlmsgerr>(body);
        return Unavailable(std::string("list links: ") +
                           std::strerror(error.has_value() ? -error->error : EIO));
      }
      const auto link = ReadAs<ifinfomsg>(body);
      if (header->nlmsg_type == RTM_NEWLINK && link.has_value()) {
        fn(*link, body.substr(Aligned(sizeof(ifinfomsg))));
      }
    }
  }
}

}  // namespace berth::runtime
