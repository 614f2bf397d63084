// SPDX-License-Identifier: Apache-2.0
// What a server has of hosts: everything while it leads, nothing while another one does. Owned by
// the ApiServer; its handlers look here with every request.
#pragma once

#include <string>

#include "base/status.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "fleet/fleet.h"

namespace berth::apiserver {

struct Hosts {
  // Answers where things would be placed; null on a server that places nothing.
  client::PlacementAdvice* advice = nullptr;
  // How much of each pool is promised, and what its host measures; null where there is none.
  const client::PoolRooms* rooms = nullptr;
  fleet::Fleet* fleet = nullptr;
  // URL of the server that has the hosts; "" if none is known, or it is this one.
  std::string leader = {};

  // Why there are none, for who asks for them.
  Status Missing() const {
    if (leader.empty()) return Unavailable("no server is known to lead, and to have the hosts");
    return Unavailable("hosts are connected to the server that leads, " + leader + ": ask there");
  }
};

}  // namespace berth::apiserver
