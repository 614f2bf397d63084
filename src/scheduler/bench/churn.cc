// SPDX-License-Identifier: Apache-2.0
#include "scheduler/bench/churn.h"

#include "base/check.h"

namespace berth::scheduler {
namespace {

constexpr size_t kSets = 40;         // of machines that keep apart from each other
constexpr double kSelecting = 0.20;  // with a selector of three labels
constexpr double kLonely = 0.05;     // with anti-affinity per host
constexpr double kTolerant = 0.05;

}  // namespace

Churn::Churn(ChurnOptions options)
    : options_(options),
      random_(options.seed),
      fleet_(DrawFleet(options.pools, random_)),
      classes_(BenchClasses()),
      board_({.seed = options.seed}),
      hosts_(options.pools) {
  for (size_t i = 0; i < options.pools; ++i) {
    board_.SetPool(fleet_.pools[i]);
    hosts_[i].capacity = fleet_.capacities[i];
  }
  for (size_t d = 0; d < kBenchResources.size(); ++d)
    dimensions_[d] = *board_.DimensionOf(kBenchResources[d]);
  MakeShapes(options.policy);
  int64_t capacity = 0;
  for (const auto& vector : fleet_.capacities) capacity += vector[0];
  int64_t used = 0;
  const auto goal = static_cast<int64_t>(options.fill * static_cast<double>(capacity));
  while (used < goal && refused_ < static_cast<int64_t>(options.pools)) {
    const size_t before = live_.size();
    Place(DrawShape());
    if (live_.size() > before) used += classes_[live_.back().kind].demand[0];
  }
  placed_ = 0;
  refused_ = 0;
}

void Churn::MakeShapes(Policy policy) {
  const auto add = [&](std::vector<Shape>& into, const Requirements& requirements, size_t kind) {
    into.push_back(board_.Intern(requirements));
    shapes_.push_back(into.back());
    class_of_.push_back(static_cast<uint32_t>(kind));
  };
  const auto base = [&](size_t kind) {
    Requirements requirements{.class_name = classes_[kind].name};
    requirements.resources = ToResources(classes_[kind].demand);
    requirements.policy = policy;
    requirements.namespace_name = "bench";
    return requirements;
  };
  for (size_t kind = 0; kind < kBenchClasses; ++kind) add(plain_, base(kind), kind);
  for (size_t kind = 0; kind < kBenchClasses; ++kind) {
    for (int selector = 0; selector < 24; ++selector) {
      Requirements requirements = base(kind);
      requirements.pools =
          Selector::Equals({{"topology.ironcore.dev/zone", "z" + std::to_string(selector % 3)},
                            {"generation", "g" + std::to_string(selector / 3 % 4)},
                            {"disk", selector / 12 == 0 ? "ssd" : "hdd"}});
      add(selecting_, requirements, kind);
    }
  }
  for (size_t kind = 0; kind < kBenchClasses; ++kind) {
    Requirements requirements = base(kind);
    requirements.tolerations = {{.key = "dedicated", .op = Toleration::Op::kExists}};
    add(tolerant_, requirements, kind);
  }
  for (size_t set = 0; set < kSets; ++set) {
    Requirements requirements = base(set % kBenchClasses);
    requirements.labels = {{"set", "s" + std::to_string(set)}};
    requirements.anti_affinity = {{.selector = Selector::Equals(requirements.labels),
                                   .topology_key = std::string(kHostTopology)}};
    add(lonely_, requirements, set % kBenchClasses);
  }
}

size_t Churn::DrawShape() {
  const double drawn = random_.Unit();
  size_t first = 0;
  if (drawn < kSelecting) return plain_.size() + random_.Below(selecting_.size());
  first = plain_.size() + selecting_.size();
  if (drawn < kSelecting + kTolerant) return first + random_.Below(tolerant_.size());
  first += tolerant_.size();
  if (drawn < kSelecting + kTolerant + kLonely) return first + random_.Below(lonely_.size());
  return random_.Below(plain_.size());
}

void Churn::Place(size_t shape) {
  request_.key = {.high = 1, .low = ++last_key_ * 0x9e3779b97f4a7c15};
  request_.shape = shapes_[shape];
  board_.Decide(request_, options_.ranked, decision_);
  if (decision_.ranked.empty()) {
    ++refused_;
    return;
  }
  const Candidate& best = decision_.ranked[0];
  __builtin_prefetch(&hosts_[ToSize(best.pool)]);
  CHECK(board_.Assume(request_, best) == AssumeVerdict::kAssumed);
  const auto pool = static_cast<uint32_t>(best.pool);
  // The host says yes and counts it; the commit follows.
  board_.Held(request_.key, {.boot = 1, .counter = ++hosts_[pool].ledger});
  board_.Confirm(request_.key);
  const uint32_t kind = class_of_[shape];
  for (size_t d = 0; d < kBenchResources.size(); ++d)
    hosts_[pool].used[d] += classes_[kind].demand[d];
  live_.push_back({.key = request_.key, .pool = pool, .kind = kind});
  ++placed_;
}

void Churn::ReportOf(uint32_t pool) {
  std::array<int64_t, kDimensionsMax> free;
  free.fill(INT64_MAX);
  for (size_t d = 0; d < dimensions_.size(); ++d)
    free[dimensions_[d]] = hosts_[pool].capacity[d] - hosts_[pool].used[d];
  board_.Report(PoolIndex{pool}, {.boot = 1, .counter = ++hosts_[pool].ledger}, free);
}

void Churn::DrawLeaving() {
  leaving_.clear();
  std::array<ObjectKey, kBatch> keys;
  while (leaving_.size() < kBatch && !live_.empty()) {
    Live& drawn = live_[random_.Below(live_.size())];
    keys[leaving_.size()] = drawn.key;
    __builtin_prefetch(&hosts_[drawn.pool]);
    leaving_.push_back(drawn);
    drawn = live_.back();
    live_.pop_back();
  }
  board_.Expect(std::span(keys).first(leaving_.size()));
}

void Churn::ReleaseOne() {
  if (leaving_.empty()) return;
  const Live gone = leaving_.back();
  leaving_.pop_back();
  CHECK(board_.Forget(gone.key));
  for (size_t d = 0; d < kBenchResources.size(); ++d)
    hosts_[gone.pool].used[d] -= classes_[gone.kind].demand[d];
  ReportOf(gone.pool);
}

void Churn::Run(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (i % kBatch == 0) {
      while (!leaving_.empty()) ReleaseOne();
      DrawLeaving();
    }
    Place(DrawShape());
    ReleaseOne();
  }
}

}  // namespace berth::scheduler
