// SPDX-License-Identifier: Apache-2.0
// What hosts gave back that they had accepted (G2). Their reason may be for good: if there is
// nothing else, an object comes back to them after a pause that grows. Pure: time comes in as a
// value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text_map.h"
#include "base/time.h"
#include "scheduler/core/words.h"
#include "scheduler/placing/object_directory.h"

namespace berth::scheduler {

// Changes with every edit of an object that has no place, and not when it comes to a pool and
// leaves it again.
int64_t EditionOf(const ObjectRecord& record);

class GivenBackBook {
 public:
  void Add(const ObjectRecord& record, PoolIndex pool, Time now);
  // When the object may go to that pool again; in the past if nothing is against it. Who edits the
  // object may have removed the reason: then nothing is.
  Time ReturnTime(const ObjectRecord& record, PoolIndex pool) const;
  // The object is gone.
  void Forget(std::string_view uid);

 private:
  struct Entry {
    int64_t edition = 0;
    int count = 0;
    std::vector<PoolIndex> pools;  // the last ones
    Time until;
  };

  TextMap<Entry> entries_;
};

}  // namespace berth::scheduler
