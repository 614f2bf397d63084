// SPDX-License-Identifier: Apache-2.0
// A SoleServer keeps a store that many could reach to one server: a key with a lease says who
// serves. A server that was killed has its place back at once, because its data folder names it;
// another one waits until the lease has ended.
//
// It is what makes "whoever held the scheduler's lease is dead" true. Commits do not rely on it:
// they are conditioned on what they change.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

struct SoleServerOptions {
  std::string id;    // of the data folder, which only one process uses at a time
  std::string name;  // for whoever is refused
  Duration ttl = Duration::Seconds(10);
};

class SoleServer {
 public:
  // Waits for the place for three times the ttl at most. Conflict names who has it. The store
  // outlives this.
  static rt::Task<Result<std::unique_ptr<SoleServer>>> Take(rt::Loop& loop,
                                                            store::Store& store,
                                                            SoleServerOptions options);

  // Renews until it is cancelled. Conflict: another server has the place.
  rt::Task<Status> Keep();
  // Gives the place back.
  rt::Task<Status> Leave();

 private:
  SoleServer(store::Store& store, SoleServerOptions options)
      : store_(store), options_(std::move(options)) {}
  // True if the place is ours now.
  rt::Task<Result<bool>> TryTake();

  store::Store& store_;
  const SoleServerOptions options_;
  store::LeaseId lease_;
  std::string other_;  // who has it
};

}  // namespace berth::app
