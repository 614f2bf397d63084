// SPDX-License-Identifier: Apache-2.0
// The checkers of a simulation in which several servers share a store.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "sim/checkers.h"
#include "sim/reign_store.h"
#include "store/store.h"

namespace berth::sim {

// Whoever writes as the leader is the leader: after the next one has raised the guard nothing of
// the one before gets into the store.
class OneLeaderChecker final : public Checker, public ReignWitness {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "one-leader"; }
  void OnChange(const Truth::Change& change) override;
  void LeaderWrote(store::Revision reign, store::Revision revision) override;

 private:
  std::vector<store::Revision> raised_;  // when the guard was, in order
};

// When the leader is lost, and nothing else goes wrong, the next one places something within three
// seconds.
class FailoverChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "failover"; }
  void OnChange(const Truth::Change& change) override;
  void OnTick() override;

  // The leader is lost at this moment; something waits for a place, and another server is well.
  void Lost() { lost_ = Loss{.at = sight_.now(), .is_followed = false}; }
  // Something else went wrong, or the leader was not lost after all: no promise is made.
  void Excuse() { lost_.reset(); }

  size_t failovers() const { return failovers_; }  // that were measured
  Duration longest() const { return longest_; }

 private:
  struct Loss {
    Time at;
    bool is_followed = false;  // the guard was raised since
  };
  std::optional<Loss> lost_;
  size_t failovers_ = 0;
  Duration longest_;
};

}  // namespace berth::sim
