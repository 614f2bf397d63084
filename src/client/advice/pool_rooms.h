// SPDX-License-Identifier: Apache-2.0
// PoolRooms says how much of each pool is promised and free, as the scheduler
// counts it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "meta/kind.h"
#include "meta/quantity.h"

namespace berth::client {

struct PoolRoom {
  std::map<std::string, meta::Quantity> capacity;
  std::map<std::string, meta::Quantity> allocated;  // promised to what is placed or being placed
  std::map<std::string, meta::Quantity> free;       // what can still be placed
  int64_t objects = 0;
};

class PoolRooms {
 public:
  virtual ~PoolRooms() = default;
  // nullopt for a pool that the scheduler does not know (yet).
  virtual std::optional<PoolRoom> RoomOf(const meta::KindInfo& pool_kind,
                                         std::string_view name) const = 0;
};

}  // namespace berth::client
