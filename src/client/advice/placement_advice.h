// SPDX-License-Identifier: Apache-2.0
// PlacementAdvice says where an object would be placed and why, without placing it. Whoever serves
// the API asks; whoever schedules answers.
#pragma once

#include <cstdint>
#include <span>

#include "apis/berth/placement_review.h"
#include "base/result.h"
#include "meta/object.h"

namespace berth::client {

struct PlacementQuestion {
  // Valid and with its defaults; one with a UID is the object that exists, in the state given.
  const meta::Object& object;
  // What would be created with it: counts where nothing of that name exists. Kinds that decide
  // about no place are ignored.
  std::span<const meta::Object> related = {};
  // Up to so many copies are counted.
  int32_t copies = apis::berth_dev::kCopiesCounted;
};

class PlacementAdvice {
 public:
  virtual ~PlacementAdvice() = default;

  // About a Machine, Volume, VolumeSnapshot, Bucket, Reservation, MachineSet or MachineGroup. Takes
  // no room and leaves no trace. BadRequest for other kinds, Unavailable while nobody schedules
  // here. On the loop that it lives on; answers at once.
  virtual Result<apis::berth_dev::PlacementReviewStatus> Review(
      const PlacementQuestion& question) = 0;
};

}  // namespace berth::client
