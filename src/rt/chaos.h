// SPDX-License-Identifier: Apache-2.0
// Marks for simulation. CHAOS("watch.drop_before_send") is a place where a simulation may take the
// nasty branch; it is false unless a ChaosPlan is in force on this thread, and the constant false
// in release builds. REACHED("bind.conflict_retry") counts a rare branch, so that a test run can
// say which were never taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/random.h"

namespace berth::rt {

struct ChaosOptions {
  double site_chance = 0.25;  // a site takes part in a run
  double hit_chance = 0.05;   // a site that takes part says yes
};

// While it lives, CHAOS marks on this thread answer from the seed. One at a time per thread.
class ChaosPlan {
 public:
  explicit ChaosPlan(uint64_t seed, ChaosOptions options = {});
  ~ChaosPlan();
  ChaosPlan(const ChaosPlan&) = delete;
  ChaosPlan& operator=(const ChaosPlan&) = delete;

  bool Hit(std::string_view site);
  // How often each site said yes.
  const std::map<std::string, uint64_t, std::less<>>& hits() const { return hits_; }

 private:
  ChaosOptions options_;
  Random random_;
  std::map<std::string, bool, std::less<>> sites_;  // whether the site takes part
  std::map<std::string, uint64_t, std::less<>> hits_;
};

// How often each REACHED mark that was passed at least once has been passed, in this process.
std::map<std::string, uint64_t> ReachedCounts();

namespace internal {

bool ChaosHit(std::string_view site);

class ReachedSite {
 public:
  explicit ReachedSite(std::string_view name);
  void Count() { count_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend std::map<std::string, uint64_t> berth::rt::ReachedCounts();
  std::string_view name_;
  std::atomic<uint64_t> count_{0};
  ReachedSite* next_ = nullptr;
};

}  // namespace internal
}  // namespace berth::rt

#ifdef BERTH_CHAOS
#define CHAOS(name) (::berth::rt::internal::ChaosHit(name))
#define REACHED(name)                                             \
  do {                                                            \
    static ::berth::rt::internal::ReachedSite reached_site(name); \
    reached_site.Count();                                         \
  } while (false)
#else
#define CHAOS(name) (false)
#define REACHED(name) \
  do {                \
  } while (false)
#endif
