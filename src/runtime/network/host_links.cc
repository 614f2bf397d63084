// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/host_links.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "runtime/network/netlink.h"

namespace berth::runtime {
namespace {

constexpr const char* kTun = "/dev/net/tun";
constexpr uint8_t kAddressesByNobody = 1;  // IN6_ADDR_GEN_MODE_NONE

Status Failed(const std::string& doing, int error) {
  const std::string text = doing + ": " + std::strerror(error);
  return error == EPERM || error == EACCES ? Forbidden(text + " (CAP_NET_ADMIN is needed)")
                                           : Unavailable(text);
}

std::string_view BytesOf(const MacAddress& mac) {
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

std::string TextIn(std::string_view value) {
  return std::string(value.substr(0, value.find('\0')));
}

HostLink LinkOf(const ifinfomsg& link, std::string_view attributes) {
  HostLink found;
  found.index = link.ifi_index;
  found.is_up = (link.ifi_flags & IFF_UP) != 0;
  EachAttribute(attributes, [&found](uint16_t type, std::string_view value) {
    switch (type) {
      case IFLA_IFNAME: found.name = TextIn(value); break;
      case IFLA_IFALIAS: found.alias = TextIn(value); break;
      case IFLA_MASTER:
        if (value.size() == sizeof found.master) {
          std::memcpy(&found.master, value.data(), sizeof found.master);
        }
        break;
      case IFLA_LINKINFO:
        EachAttribute(value, [&found](uint16_t inner, std::string_view text) {
          if (inner == IFLA_INFO_KIND) found.kind = TextIn(text);
        });
        break;
      default: break;
    }
  });
  return found;
}

Result<HostLink> FindLink(const std::string& name) {
  TRY(const std::vector<HostLink> links, ListLinks());
  const auto found = std::ranges::find(links, name, &HostLink::name);
  if (found == links.end()) return NotFound("link " + name);
  return *found;
}

ifinfomsg About(int index, unsigned flags, unsigned changed) {
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = index;
  link.ifi_flags = flags;
  link.ifi_change = changed;
  return link;
}

Status Perform(RouteSocket& socket, const LinkRequest& request, const std::string& doing) {
  TRY(const int error, socket.Ask(request));
  return error == 0 ? OkStatus() : Failed(doing, error);
}

// The host has no address on it, not even one that it would give itself.
Status KeepQuiet(RouteSocket& socket, int index, const std::string& name) {
  LinkRequest request(RTM_SETLINK, NLM_F_ACK, About(index, 0, 0));
  request.Open(IFLA_AF_SPEC).Open(AF_INET6).U8(IFLA_INET6_ADDR_GEN_MODE, kAddressesByNobody);
  request.Close().Close();
  TRY(const int error, socket.Ask(request));
  const bool without_ip6 = error == EAFNOSUPPORT || error == EOPNOTSUPP;
  return error == 0 || without_ip6 ? OkStatus() : Failed("link " + name + ": no addresses", error);
}

LinkRequest NewBridge(const std::string& name) {
  LinkRequest request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, About(0, 0, 0));
  request.Text(IFLA_IFNAME, name);
  request.Open(IFLA_LINKINFO).Text(IFLA_INFO_KIND, "bridge").Open(IFLA_INFO_DATA);
  // No waiting for a spanning tree, and multicast reaches everybody: nobody else asks for it.
  request.U32(IFLA_BR_FORWARD_DELAY, 0).U32(IFLA_BR_STP_STATE, 0).U8(IFLA_BR_MCAST_SNOOPING, 0);
  request.Close().Close();
  return request;
}

// A tap that stays when we close it.
Status MakeTap(const TapLink& tap) {
  const int fd = open(kTun, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Failed(std::string("open ") + kTun, errno);
  ifreq request = {};
  std::ranges::copy(tap.name, request.ifr_name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  int error = 0;
  const auto call = [&](unsigned long what, unsigned long value) {
    if (error == 0 && ioctl(fd, what, value) != 0) error = errno;
  };
  call(TUNSETIFF, reinterpret_cast<unsigned long>(&request));
  call(TUNSETOWNER, tap.user_id);
  call(TUNSETPERSIST, 1);
  close(fd);
  return error == 0 ? OkStatus() : Failed("make tap " + tap.name, error);
}

Status CheckName(const std::string& name, const std::string& alias) {
  if (name.empty() || name.size() > kLinkNameBytesMax || alias.size() > kLinkAliasBytesMax) {
    return BadRequest("link " + Quote(name) + ": a name of 1 to 15 bytes, an alias of at most 255");
  }
  return OkStatus();
}

}  // namespace

Status CheckLinks() {
  const int fd = open(kTun, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Failed(std::string("open ") + kTun, errno);
  close(fd);
  TRY(RouteSocket socket, RouteSocket::Open());
  // A link that cannot be: what the kernel says first is whether we may, and whether it has
  // bridges.
  LinkRequest request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, About(0, 0, 0));
  request.Text(IFLA_IFNAME, "lo").Open(IFLA_LINKINFO).Text(IFLA_INFO_KIND, "bridge").Close();
  TRY(const int error, socket.Ask(request));
  return error == EEXIST ? OkStatus() : Failed("make a bridge", error);
}

Result<std::vector<HostLink>> ListLinks() {
  TRY(RouteSocket socket, RouteSocket::Open());
  std::vector<HostLink> links;
  TRY_STATUS(socket.EachLink([&links](const ifinfomsg& link, std::string_view attributes) {
    links.push_back(LinkOf(link, attributes));
  }));
  return links;
}

Status EnsureBridge(const BridgeLink& bridge) {
  TRY_STATUS(CheckName(bridge.name, bridge.alias));
  TRY(RouteSocket socket, RouteSocket::Open());
  TRY(const int error, socket.Ask(NewBridge(bridge.name)));
  if (error != 0 && error != EEXIST) return Failed("make bridge " + bridge.name, error);
  TRY(const HostLink link, FindLink(bridge.name));
  if (link.kind != "bridge") return Conflict("link " + bridge.name + " is not a bridge");
  if (link.is_up && link.alias == bridge.alias) return OkStatus();
  TRY_STATUS(KeepQuiet(socket, link.index, bridge.name));
  LinkRequest up(RTM_SETLINK, NLM_F_ACK, About(link.index, IFF_UP | IFF_NOARP, IFF_UP | IFF_NOARP));
  up.Text(IFLA_IFALIAS, bridge.alias);
  return Perform(socket, up, "bridge " + bridge.name + ": up");
}

Result<int> EnsureTap(const TapLink& tap) {
  TRY_STATUS(CheckName(tap.name, tap.alias));
  TRY(const HostLink bridge, FindLink(tap.bridge));
  Result<HostLink> link = FindLink(tap.name);
  if (link.status().Is(Reason::kNotFound)) {
    TRY_STATUS(MakeTap(tap));
    link = FindLink(tap.name);
  }
  if (!link.ok()) return link.status();
  if (link->kind != "tun") return Conflict("link " + tap.name + " is not a tap");
  if (link->is_up && link->master == bridge.index && link->alias == tap.alias) return link->index;
  TRY(RouteSocket socket, RouteSocket::Open());
  TRY_STATUS(KeepQuiet(socket, link->index, tap.name));
  LinkRequest request(RTM_SETLINK, NLM_F_ACK, About(link->index, IFF_UP, IFF_UP));
  request.Raw(IFLA_ADDRESS, BytesOf(tap.mac)).Text(IFLA_IFALIAS, tap.alias);
  request.U32(IFLA_MASTER, static_cast<uint32_t>(bridge.index));
  TRY_STATUS(Perform(socket, request, "tap " + tap.name + ": plug into " + tap.bridge));
  return link->index;
}

Status RemoveLink(const std::string& name) {
  TRY_STATUS(CheckName(name, ""));
  TRY(RouteSocket socket, RouteSocket::Open());
  LinkRequest request(RTM_DELLINK, NLM_F_ACK, About(0, 0, 0));
  request.Text(IFLA_IFNAME, name);
  TRY(const int error, socket.Ask(request));
  return error == 0 || error == ENODEV ? OkStatus() : Failed("remove link " + name, error);
}

}  // namespace berth::runtime
