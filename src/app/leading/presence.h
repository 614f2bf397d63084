// SPDX-License-Identifier: Apache-2.0
// A Presence is the mark of a server in a store that many can reach: a key with a lease, which is
// gone some seconds after the server. Whoever wants the store for itself looks for such keys.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

// How soon after its mark was taken away a server that is well has it there again.
inline constexpr Duration kMarkedAgain = Duration::Millis(3'500);

// Conflict if a server has its mark in the store; it may be gone for some seconds.
rt::Task<Status> CheckNobodyServes(store::Store& store);
// The same for a store that somebody may just have emptied, marks included: waits for kMarkedAgain.
// What is paused is not seen.
rt::Task<Status> CheckNobodyServesEmptied(store::Store& store);

class Presence {
 public:
  // The store outlives it. `id` is of the data folder, `name` for people.
  Presence(store::Store& store, const std::string& id, std::string name)
      : store_(store), key_("/guard/server/" + id), name_(std::move(name)) {}

  rt::Task<Status> Mark();
  // Keeps the mark until it is cancelled; sets it again when somebody has taken it away.
  rt::Task<Status> Keep();
  rt::Task<Status> Leave();

 private:
  rt::Task<Status> Renew();

  store::Store& store_;
  const std::string key_;
  const std::string name_;
  store::LeaseId lease_;
};

}  // namespace berth::app
