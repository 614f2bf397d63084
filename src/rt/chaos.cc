// SPDX-License-Identifier: Apache-2.0
#include "rt/chaos.h"

#include "base/check.h"

namespace berth::rt {
namespace {

thread_local ChaosPlan* current_plan = nullptr;
std::atomic<internal::ReachedSite*> first_site = nullptr;

}  // namespace

ChaosPlan::ChaosPlan(uint64_t seed, ChaosOptions options) : options_(options), random_(seed) {
  CHECK(current_plan == nullptr) << "one chaos plan at a time";
  current_plan = this;
}

ChaosPlan::~ChaosPlan() { current_plan = nullptr; }

bool ChaosPlan::Hit(std::string_view site) {
  auto found = sites_.find(site);
  if (found == sites_.end()) {
    found = sites_.emplace(std::string(site), random_.Chance(options_.site_chance)).first;
  }
  if (!found->second || !random_.Chance(options_.hit_chance)) return false;
  ++hits_[std::string(site)];
  return true;
}

std::map<std::string, uint64_t> ReachedCounts() {
  std::map<std::string, uint64_t> counts;
  for (auto* site = first_site.load(std::memory_order_acquire); site != nullptr;
       site = site->next_) {
    counts[std::string(site->name_)] += site->count_.load(std::memory_order_relaxed);
  }
  return counts;
}

namespace internal {

bool ChaosHit(std::string_view site) { return current_plan != nullptr && current_plan->Hit(site); }

ReachedSite::ReachedSite(std::string_view name) : name_(name) {
  next_ = first_site.load(std::memory_order_relaxed);
  while (!first_site.compare_exchange_weak(next_, this, std::memory_order_acq_rel)) {
  }
}

}  // namespace internal
}  // namespace berth::rt
