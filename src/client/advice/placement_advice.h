// SPDX-License-Identifier: Apache-2.0
// PlacementAdvice says where an object would be placed and why, without placing it. Whoever serves
// the API asks; whoever schedules answers.
#pragma once

#include <cstdint>

#include "apis/berth/placement_review.h"
#include "base/result.h"
#include "meta/object.h"

namespace berth::client {

class PlacementAdvice {
 public:
  virtual ~PlacementAdvice() = default;

  // About a Machine, Volume, Bucket or MachineSet, valid and with its defaults; one with a UID is
  // the object that exists, in the state given. Up to `copies` copies are counted. Takes no room
  // and leaves no trace. BadRequest for other kinds, Unavailable while nobody schedules here.
  // On the loop that it lives on; answers at once.
  virtual Result<apis::berth_dev::PlacementReviewStatus> Review(const meta::Object& object,
                                                                int32_t copies) = 0;
};

}  // namespace berth::client
