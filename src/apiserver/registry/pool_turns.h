// SPDX-License-Identifier: Apache-2.0
// PoolTurns gives every pool to one commit at a time (on this server): in parallel, commits on one
// pool's guard would all but one fail and try again. A commit takes all of its pools at once, in
// the order of arrival per pool, so nobody waits for someone who waits for them.
#pragma once

#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::apiserver {

class PoolTurns {
 public:
  using Pools = std::set<std::string>;  // UIDs

  class Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), pools_(std::move(other.pools_)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(turns_, other.turns_);
      std::swap(pools_, other.pools_);
      return *this;
    }
    ~Permit() {
      if (turns_ != nullptr) turns_->Leave(pools_);
    }

   private:
    friend class PoolTurns;
    Permit(PoolTurns& turns, Pools pools) : turns_(&turns), pools_(std::move(pools)) {}
    PoolTurns* turns_ = nullptr;
    Pools pools_;
  };

  PoolTurns() = default;
  PoolTurns(const PoolTurns&) = delete;
  PoolTurns& operator=(const PoolTurns&) = delete;
  ~PoolTurns();

  // Waits until all of these are free; Cancelled. No pools: at once.
  rt::Task<Result<Permit>> Enter(Pools pools);

 private:
  struct Waiter {
    const Pools* pools = nullptr;
    rt::Leaf<Status> leaf;
    bool queued = true;
    std::list<Waiter*>::iterator place;
  };
  bool IsFree(const Pools& pools, const std::set<std::string_view>& wanted) const;
  void Leave(const Pools& pools);
  void Serve();

  Pools busy_;
  std::list<Waiter*> queue_;
};

}  // namespace berth::apiserver
