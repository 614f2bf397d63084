// SPDX-License-Identifier: Apache-2.0
// The bench measures what it says, and the default policy packs as well as it must.
#include "scheduler/bench/scheduler_bench.h"

#include <algorithm>

#include "scheduler/bench/churn.h"
#include "scheduler/bench/packing.h"

namespace berth::scheduler {
namespace {

TEST(SchedulerBench, TheDefaultPolicyIsWithinTwoPercentOfExactBestFitAndPacksBestOfAll) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const double exact = std::max(UtilisationOfExactFit(ExactFit::kSum, 60, seed),
                                  UtilisationOfExactFit(ExactFit::kSquares, 60, seed));
    const double ours = UtilisationOfBoard(kDefaultPolicy, 60, seed);
    EXPECT_GT(ours, exact * 0.98) << "seed " << seed;
    for (const Policy other : {Policy::kSpread, Policy::kBalanced}) {
      EXPECT_GE(ours, UtilisationOfBoard(other, 60, seed))
          << PolicyName(other) << ", seed " << seed;
    }
  }
}

TEST(SchedulerBench, ChurnPlacesAndReleasesAsMany) {
  Churn churn({.pools = 80, .seed = 3});
  const size_t before = churn.objects();
  churn.Run(200);
  EXPECT_GT(churn.placed(), 150);
  EXPECT_EQ(churn.objects() + 200, before + static_cast<size_t>(churn.placed()));
  EXPECT_EQ(churn.placed() + churn.refused(), 200);
}

TEST(SchedulerBench, NamesItsFiguresAndWhatTheyDependOn) {
  int64_t ticks = 0;
  SchedulerBenchOptions options;
  options.now = [&] { return Time::FromNanos(++ticks * 1'000'000'000); };
  options.duration = Duration::Seconds(1);
  options.rounds = 1;
  options.quality_seeds = 1;
  options.quality_pools = 20;
  options.pools = {100};
  std::vector<std::string> names;
  for (const auto& figure : RunSchedulerBench(options)) {
    names.push_back(figure.metric);
    EXPECT_TRUE(figure.params.contains("build")) << figure.metric;
    EXPECT_TRUE(figure.params.contains("pools")) << figure.metric;
  }
  const std::vector<std::string> expected = {"core_rate_100",
                                             "core_rate_100_spread",
                                             "core_rank3_rate_100",
                                             "core_quality",
                                             "core_utilisation_exact_best_fit"};
  for (const auto& name : expected) EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
}

}  // namespace
}  // namespace berth::scheduler
