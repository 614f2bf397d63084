// SPDX-License-Identifier: Apache-2.0
// An explanation of the board in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meta/object.h"
#include "meta/quantity.h"
#include "scheduler/core/answers.h"
#include "scheduler/placing/attempt.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/pending_reports.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

// The volumes of a machine, as far as they decide about its place.
struct Ties {
  // Those that leave it few pools: "volume data is on pool alpha-disks, which only host alpha
  // reaches". "" if all that have a place are reached from everywhere.
  std::string text;
  std::vector<std::string> joint;  // names, in the order of the request's joint volumes
};
Ties DescribeTies(const Ask& ask, const PoolDirectory& pools);

// "none of 5 pools takes it: 3 have too little room (2 cpu, 1 memory), 2 have a taint that is not
// tolerated; nearest is alpha, which lacks 1500m cpu". If the volumes that get their pools with it
// hold it up: "; volume data: none of 2 volume pools takes it: 2 do not offer the class". `ties`
// are those of the request.
Pending DescribePending(const Explanation& explanation,
                        const std::vector<Refusal>& refusals,
                        const PoolDirectory& pools,
                        const Ties& ties);

// Of one volume: "1 of 2 volume pools would take it by itself: disks, which only host alpha
// reaches", or why none does.
std::string DescribeVolume(const Explanation& volume, const PoolDirectory& pools);

// "alpha, which lacks 1500m cpu", "alpha (Cordoned)"; "" if the pool is gone.
std::string DescribeMiss(const NearMiss& miss, const PoolDirectory& pools);

// What a rule that pools fail means, after a number: "have too little room".
std::string_view RuleText(Rule rule);

// "alpha said NoRoom (2 cpu missing), beta said Draining": hosts that were asked.
std::string DescribeRefusals(const std::vector<Refusal>& refusals);

// An amount of the board as the API writes it: 1500 of cpu is 1500m.
meta::Quantity QuantityOf(std::string_view resource, int64_t amount);

// "1500m cpu, 2Gi memory"; "room for one more of class small".
std::string DescribeAmounts(const Resources& amounts);

// status.placement.poolUID of a Machine, Volume or Bucket; "" without.
std::string PlacedPoolOf(const meta::Object& object);

}  // namespace berth::scheduler
