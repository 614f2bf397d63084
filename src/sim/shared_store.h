// SPDX-License-Identifier: Apache-2.0
// A SharedStore is the etcd of a simulated world: one store on a loop of its own, which lives while
// servers come and go. Each of them has a handle that reaches it over a link with a latency, and
// the link can be cut: then calls fail after a while, and whether one happened that was under way
// is unknown.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"
#include "store/store.h"

namespace berth::sim {

// Between a server and the store. Whoever cuts it stands outside.
class StoreLink {
 public:
  explicit StoreLink(uint64_t seed) : random_(seed) {}
  void Cut() { is_cut_ = true; }
  void Heal() { is_cut_ = false; }
  bool is_cut() const { return is_cut_; }
  Duration DrawLatency() { return Duration::Micros(random_.Between(100, 2'000)); }

 private:
  Random random_;
  bool is_cut_ = false;
};

class SharedStore {
 public:
  explicit SharedStore(rt::SimLoop& world);
  // REQUIRES: Close() was awaited.
  ~SharedStore();

  // For one life of a server, on its loop. The link and this outlive the handle.
  std::unique_ptr<store::Store> NewHandle(StoreLink& link);
  // The store itself, on the store's loop.
  store::Store& own() { return *own_; }
  rt::Loop& loop() { return loop_; }
  // On the store's loop.
  rt::Task<Status> Close();

 private:
  rt::Loop& loop_;
  std::unique_ptr<store::MemoryStore> memory_;
  std::unique_ptr<store::Store> own_;
  rt::TaskScope scope_;  // what servers ask for
};

}  // namespace berth::sim
