// SPDX-License-Identifier: Apache-2.0
// A Churn keeps a board in motion: as many placements as releases, with everything that makes them
// hard.
#pragma once

#include <vector>

#include "base/large_memory.h"
#include "base/random.h"
#include "scheduler/bench/fleet.h"
#include "scheduler/core/board.h"

namespace berth::scheduler {

struct ChurnOptions {
  size_t pools = 1'000;
  uint64_t seed = 1;
  Policy policy = kDefaultPolicy;
  size_t ranked = 1;   // pools asked for per decision
  double fill = 0.75;  // of all cpu, before the measurement
};

class Churn {
 public:
  explicit Churn(ChurnOptions options);

  // Deletions come as a watch delivers them: the keys of so many are known, and the board is told
  // (Board::Expect), before the first of them is applied.
  static constexpr size_t kBatch = 16;

  // `count` placements and as many releases, each with a host's report.
  void Run(size_t count);
  int64_t placed() const { return placed_; }
  int64_t refused() const { return refused_; }
  size_t objects() const { return live_.size() + leaving_.size(); }

 private:
  struct Live {
    ObjectKey key;
    uint32_t pool;
    uint32_t kind;  // index of its class
  };
  // What a host knows of itself.
  struct alignas(64) Host {
    BenchVector capacity{};
    BenchVector used{};
    uint64_t ledger = 0;  // version
  };
  void MakeShapes(Policy policy);
  size_t DrawShape();
  void Place(size_t shape);
  void DrawLeaving();
  void ReleaseOne();
  void ReportOf(uint32_t pool);

  ChurnOptions options_;
  Random random_;
  BenchFleet fleet_;
  std::vector<BenchClass> classes_;
  Board board_;
  std::vector<Shape> plain_;      // by class
  std::vector<Shape> selecting_;  // class * kSelectors + selector
  std::vector<Shape> tolerant_;
  std::vector<Shape> lonely_;  // anti-affinity, by set
  std::vector<uint32_t> class_of_;
  std::vector<Shape> shapes_;
  Request request_;
  Decision decision_;
  LargeVector<Live> live_;
  std::vector<Live> leaving_;  // who is released next, no longer in live_
  LargeVector<Host> hosts_;
  std::array<size_t, 3> dimensions_{};
  uint64_t last_key_ = 0;
  int64_t placed_ = 0;
  int64_t refused_ = 0;
};

}  // namespace berth::scheduler
