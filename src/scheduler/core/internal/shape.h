// SPDX-License-Identifier: Apache-2.0
// What the board remembers about requirements, so that a decision starts from numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/core/internal/slot_cache.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

struct CompanyTerm;
using CompanyRef = std::shared_ptr<CompanyTerm>;

// More than any pool may have, by one: 1,000 objects of a class that somebody wrote past its
// validation, say, are no overflow yet on one pool (kUnreported less 1,000 * 2^53 > -2^63).
inline constexpr int64_t kDemandMax = (int64_t{1} << 53) + 1;

struct Demand {
  size_t dimension = 0;
  int64_t amount = 0;
};

class alignas(64) CompiledShape {
 public:
  explicit CompiledShape(Requirements given) : requirements(std::move(given)) {}

  // ---- What every placement and release reads, side by side.

  // How many objects of this shape are placed, and what keeps it alive meanwhile (`kept`): counted
  // here, by the one owner of the board, because a shared pointer per object costs two atomic
  // operations for each that comes and goes.
  size_t placed = 0;
  // Valid for one version of the board's dimensions.
  uint64_t dimensions_version = 0;
  std::vector<Demand> demands;  // amounts above zero, dimension ascending
  // Terms of anybody that an object of this shape counts for; valid for one version of the census.
  uint64_t census_version = 0;
  std::vector<CompanyTerm*> counted_by;
  // Terms that this shape asks about; alive as long as the shape.
  std::vector<CompanyRef> anti_affinity;
  uint32_t class_id = 0;         // 0: no class needed
  bool has_preferences = false;  // points must be counted
  SlotHint fit_index;
  SlotHint pool_view;
  SlotHint taint_view;

  // ---- The rest.

  const Requirements requirements;
  std::vector<std::string> unknown;  // resources that no pool has ever had
  std::vector<CompanyRef> affinity;
  std::vector<CompanyRef> spread;
  std::vector<CompanyRef> preferred;
  std::vector<SlotHint> preferred_views;
  Shape kept;
};

}  // namespace berth::scheduler
