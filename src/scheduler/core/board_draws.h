// SPDX-License-Identifier: Apache-2.0
// Random pools and requirements for the property tests of the board.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "scheduler/core/board.h"

namespace berth::scheduler {

class BoardDraws {
 public:
  struct Scale {
    int pools = 12;
    int steps = 300;
    size_t shapes = 0;  // how many different requirements there are; 0: new ones for every request
    bool volumes = false;  // machines have volumes, and many pools are of volumes
  };

 protected:
  BoardDraws(uint64_t seed, Scale scale) : random_(seed), scale_(scale) {}

  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_.Below(from.size())];
  }
  std::string Word(const char* prefix, uint64_t kinds) {
    return prefix + std::to_string(random_.Below(kinds));
  }

  PoolSpec DrawPool() {
    PoolSpec spec;
    spec.kind = random_.Chance(scale_.volumes ? 0.6 : 0.9) ? PoolKind::kMachine : PoolKind::kVolume;
    spec.name = Word("pool-",
                     scale_.volumes && spec.kind == PoolKind::kVolume
                         ? kVolumePoolsMax
                         : static_cast<uint64_t>(scale_.pools));
    spec.host = random_.Chance(0.5) ? Word("host-", 6) : "";
    if (random_.Chance(0.9)) spec.labels["zone"] = Word("z", 3);
    if (scale_.volumes) DrawTopology(spec);
    if (random_.Chance(0.5)) spec.labels["disk"] = random_.Chance(0.5) ? "ssd" : "hdd";
    if (random_.Chance(0.3)) spec.labels["cores"] = std::to_string(random_.Below(64));
    const TaintEffect effects[] = {
        TaintEffect::kNoSchedule, TaintEffect::kPreferNoSchedule, TaintEffect::kNoExecute};
    if (random_.Chance(0.25))
      spec.taints.push_back({Word("t", 2), Word("v", 2), effects[random_.Below(3)]});
    spec.state = DrawState();
    if (random_.Chance(0.8)) {
      spec.capacity = {{"cpu", random_.Between(0, 16)}, {"memory", random_.Between(4, 64)}};
      if (random_.Chance(0.5)) spec.capacity["storage"] = random_.Between(10, 100);
      if (random_.Chance(0.1)) spec.capacity["gpu"] = random_.Between(1, 4);
      for (const char* name : {"small", "large"})
        if (random_.Chance(0.8)) spec.classes.emplace_back(name);
    } else {
      spec.class_counts = {{"small", random_.Between(0, 7)}, {"large", random_.Between(1, 3)}};
    }
    return spec;
  }
  // From where volumes can be used, and where that is.
  void DrawTopology(PoolSpec& spec) {
    if (spec.kind == PoolKind::kVolume) spec.reach = static_cast<Reach>(random_.Below(4));
    const BoardOptions options;
    if (random_.Chance(0.8)) spec.labels[options.zone_label] = Word("z", 2);
    if (random_.Chance(0.6)) spec.labels[options.region_label] = Word("r", 2);
  }
  PoolState DrawState() {
    return {.is_ready = random_.Chance(0.95),
            .has_session = random_.Chance(0.95),
            .is_cordoned = random_.Chance(0.05),
            .is_deleting = random_.Chance(0.03),
            .is_fence_ready = random_.Chance(0.5)};
  }

  Company DrawCompany() {
    const std::vector<std::string> keys = {
        "zone", "disk", std::string(kPoolTopology), std::string(kHostTopology)};
    Company company{.selector = Selector::Equals({{"app", Word("a", 2)}}),
                    .topology_key = Pick(keys)};
    if (random_.Chance(0.2)) company.namespaces = {"n0", "n1"};
    return company;
  }
  Requirements DrawRequirements() {
    Requirements r;
    r.kind = random_.Chance(0.9) ? PoolKind::kMachine : PoolKind::kVolume;
    r.class_name = random_.Chance(0.5) ? "small" : random_.Chance(0.8) ? "large" : "";
    r.resources = {{"cpu", random_.Between(0, 4)}, {"memory", random_.Between(0, 16)}};
    if (random_.Chance(0.05)) r.resources["gpu"] = 1;
    if (random_.Chance(0.02)) r.resources["unicorn"] = 1;
    if (random_.Chance(0.2)) r.pools = Selector::Equals({{"zone", Word("z", 4)}});
    if (random_.Chance(0.1)) r.pools.terms.push_back({"disk", SelectorTerm::Op::kNotIn, {"hdd"}});
    if (random_.Chance(0.05))
      r.pools.terms.push_back({"cores", SelectorTerm::Op::kGreater, {"20"}});
    if (random_.Chance(0.05)) r.pools.terms.push_back({"disk", SelectorTerm::Op::kExists, {}});
    if (random_.Chance(0.3))
      r.tolerations.push_back({.key = Word("t", 2), .op = Toleration::Op::kExists});
    r.policy = static_cast<Policy>(random_.Below(3));
    r.needs_fence = random_.Chance(0.1);
    r.namespace_name = Word("n", 2);
    r.labels = {{"app", Word("a", 2)}};
    if (random_.Chance(0.15)) r.affinity.push_back(DrawCompany());
    if (random_.Chance(0.15)) r.anti_affinity.push_back(DrawCompany());
    if (random_.Chance(0.2))
      r.spread.push_back({.company = DrawCompany(),
                          .max_skew = static_cast<int32_t>(random_.Between(1, 3)),
                          .otherwise = static_cast<SpreadRule::Otherwise>(random_.Below(2))});
    if (random_.Chance(0.15))
      r.preferred_company.push_back(
          {.company = DrawCompany(), .weight = static_cast<int32_t>(random_.Between(-5, 5))});
    if (random_.Chance(0.15))
      r.preferred_pools.push_back({.selector = Selector::Equals({{"disk", "ssd"}}), .weight = 2});
    return r;
  }

  // 3 volumes on 6 pools are tried in every way: 6 + 36 + 216 (joint.cc).
  static constexpr uint64_t kVolumePoolsMax = 6;
  static constexpr uint64_t kVolumesMax = 3;

  Random random_;
  Scale scale_;
};

}  // namespace berth::scheduler
