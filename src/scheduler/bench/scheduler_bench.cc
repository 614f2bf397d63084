// SPDX-License-Identifier: Apache-2.0
#include "scheduler/bench/scheduler_bench.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/bench/churn.h"
#include "scheduler/bench/packing.h"

namespace berth::scheduler {
namespace {

constexpr uint64_t kSeed = 1;

std::string BuildName() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return "sanitized";
#endif
#endif
#ifdef __OPTIMIZE__
  return "optimised";
#else
  return "unoptimised";
#endif
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string NameOf(size_t pools) {
  return pools % 1'000 == 0 ? std::to_string(pools / 1'000) + "k" : std::to_string(pools);
}

void Say(const SchedulerBenchOptions& options, const std::string& what) {
  if (options.progress) options.progress(what);
}

BenchFigure MeasureRate(const SchedulerBenchOptions& options,
                        const std::string& metric,
                        const ChurnOptions& churn_options) {
  Say(options, metric);
  Churn churn(churn_options);
  churn.Run(churn_options.pools / 4 + 1'000);  // every index is built and warm
  const size_t batch = 2'000;                  // the clock is read that seldom
  std::vector<double> rates;
  int64_t placed = 0;
  int64_t refused = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const int64_t before = churn.placed();
    const int64_t refused_before = churn.refused();
    const Time start = options.now();
    Duration elapsed;
    while (elapsed < options.duration) {
      churn.Run(batch);
      elapsed = options.now() - start;
    }
    placed += churn.placed() - before;
    refused += churn.refused() - refused_before;
    rates.push_back(static_cast<double>(churn.placed() - before) / elapsed.to_seconds());
  }
  return {.metric = metric,
          .value = MedianOf(rates),
          .unit = "1/s",
          .params = {{"build", BuildName()},
                     {"pools", std::to_string(churn_options.pools)},
                     {"objects", std::to_string(churn.objects())},
                     {"policy", std::string(PolicyName(churn_options.policy))},
                     {"releases_known_ahead", std::to_string(Churn::kBatch)},
                     {"ranked", std::to_string(churn_options.ranked)},
                     {"classes", std::to_string(kBenchClasses)},
                     {"refused", std::to_string(refused)},
                     {"placed", std::to_string(placed)},
                     {"rounds", std::to_string(options.rounds)},
                     {"seed", std::to_string(churn_options.seed)}}};
}

void MeasureRates(const SchedulerBenchOptions& options, std::vector<BenchFigure>& figures) {
  for (const size_t pools : options.pools)
    figures.push_back(
        MeasureRate(options, "core_rate_" + NameOf(pools), {.pools = pools, .seed = kSeed}));
  const size_t middle = options.pools[options.pools.size() / 2];
  figures.push_back(MeasureRate(options,
                                "core_rate_" + NameOf(middle) + "_spread",
                                {.pools = middle, .seed = kSeed, .policy = Policy::kSpread}));
  figures.push_back(MeasureRate(
      options, "core_rank3_rate_" + NameOf(middle), {.pools = middle, .seed = kSeed, .ranked = 3}));
}

void MeasureQuality(const SchedulerBenchOptions& options, std::vector<BenchFigure>& figures) {
  Say(options, "core_quality");
  std::vector<double> losses;
  std::map<Policy, std::vector<double>> utilisations;
  std::vector<double> exact;
  for (int i = 0; i < options.quality_seeds; ++i) {
    const uint64_t seed = kSeed + static_cast<uint64_t>(i);
    for (const Policy policy : {Policy::kBinpack, Policy::kSpread, Policy::kBalanced})
      utilisations[policy].push_back(UtilisationOfBoard(policy, options.quality_pools, seed));
    exact.push_back(
        std::max(UtilisationOfExactFit(ExactFit::kSum, options.quality_pools, seed),
                 UtilisationOfExactFit(ExactFit::kSquares, options.quality_pools, seed)));
    losses.push_back(100 * (1 - utilisations[kDefaultPolicy].back() / exact.back()));
  }
  const std::map<std::string, std::string> params = {
      {"build", BuildName()},
      {"pools", std::to_string(options.quality_pools)},
      {"seeds", std::to_string(options.quality_seeds)},
      {"policy", std::string(PolicyName(kDefaultPolicy))}};
  figures.push_back(
      {.metric = "core_quality", .value = MedianOf(losses), .unit = "%", .params = params});
  figures.push_back({.metric = "core_utilisation_exact_best_fit",
                     .value = 100 * MedianOf(exact),
                     .unit = "%",
                     .params = params});
  for (const auto& [policy, values] : utilisations) {
    auto named = params;
    named["policy"] = std::string(PolicyName(policy));
    figures.push_back({.metric = "core_utilisation_" + named["policy"],
                       .value = 100 * MedianOf(values),
                       .unit = "%",
                       .params = named});
  }
}

}  // namespace

std::vector<BenchFigure> RunSchedulerBench(const SchedulerBenchOptions& options) {
  CHECK(options.now != nullptr && options.rounds > 0 && options.quality_seeds > 0 &&
        !options.pools.empty());
  std::vector<BenchFigure> figures;
  MeasureRates(options, figures);
  MeasureQuality(options, figures);
  return figures;
}

}  // namespace berth::scheduler
