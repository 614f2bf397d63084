// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/given_back.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

constexpr Duration kPauseFirst = Duration::Millis(500);
constexpr Duration kPauseMax = Duration::Minutes(1);
// Hosts that gave one object back and are remembered.
constexpr size_t kPoolsMax = 64;

}  // namespace

int64_t EditionOf(const ObjectRecord& record) {
  // Coming and leaving are two steps of its placement, and of its generation unless its pool was
  // named by its owner.
  return record.is_pinned ? record.generation : record.generation - record.epoch;
}

void GivenBackBook::Add(const ObjectRecord& record, PoolIndex pool, Time now) {
  Entry& entry = entries_[record.uid];
  if (entry.edition != EditionOf(record)) entry = {};
  entry.edition = EditionOf(record);
  Duration pause = kPauseFirst;
  for (int i = 0; i < entry.count && pause < kPauseMax; ++i) pause = pause * 2;
  ++entry.count;
  entry.until = now + std::min(pause, kPauseMax);
  std::erase(entry.pools, pool);
  if (entry.pools.size() == kPoolsMax) entry.pools.erase(entry.pools.begin());
  entry.pools.push_back(pool);
}

Time GivenBackBook::ReturnTime(const ObjectRecord& record, PoolIndex pool) const {
  const auto found = entries_.find(record.uid);
  if (found == entries_.end() || found->second.edition != EditionOf(record)) return {};
  const std::vector<PoolIndex>& pools = found->second.pools;
  return std::ranges::find(pools, pool) != pools.end() ? found->second.until : Time();
}

void GivenBackBook::Forget(std::string_view uid) {
  if (const auto found = entries_.find(uid); found != entries_.end()) entries_.erase(found);
}

}  // namespace berth::scheduler
