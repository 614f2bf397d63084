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

class Presence {
 public:
  // The store outlives it. `id` is of the data folder, `name` for people.
  Presence(store::Store& store, const std::string& id, std::string name)
      : store_(store), key_("/guard/server/" + id), name_(std::move(name)) {}

  rt::Task<Status> Mark();
  // Keeps the mark until it is cancelled.
  rt::Task<Status> Keep();
  rt::Task<Status> Leave();

 private:
  store::Store& store_;
  const std::string key_;
  const std::string name_;
  store::LeaseId lease_;
};

}  // namespace berth::app
