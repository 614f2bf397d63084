// SPDX-License-Identifier: Apache-2.0
// Bridges and taps of this host, over rtnetlink and /dev/net/tun. Thin: it makes what it is told,
// and making what is there already changes nothing. Everything blocks, for milliseconds.
//
// A bridge of ours has no address and speaks no IPv6: it carries frames between its ports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/network/packet.h"

namespace berth::runtime {

// What Linux takes.
constexpr size_t kLinkNameBytesMax = 15;
constexpr size_t kLinkAliasBytesMax = 255;

struct HostLink {
  std::string name;
  int index = 0;
  int master = 0;    // the bridge that it is a port of; 0: none
  std::string kind;  // "bridge", "tun"
  std::string alias;
  bool is_up = false;
};

struct BridgeLink {
  std::string name;
  std::string alias;  // for people
};
struct TapLink {
  std::string name;
  std::string alias;
  std::string bridge;
  MacAddress mac = {};   // of the host's end
  uint32_t user_id = 0;  // who may open it besides root
};

// The kernel has bridges and taps, and we may make them. An error says what is missing.
Status CheckLinks();

Result<std::vector<HostLink>> ListLinks();
Status EnsureBridge(const BridgeLink& bridge);
// Up and on its bridge, which is there. Gives its index.
Result<int> EnsureTap(const TapLink& tap);
// Ok if it is not there. A tap goes also while somebody holds it open.
Status RemoveLink(const std::string& name);

}  // namespace berth::runtime
