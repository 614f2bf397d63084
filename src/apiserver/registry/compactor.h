// SPDX-License-Identifier: Apache-2.0
// The Compactor makes the store forget history that nobody needs any more: every few minutes it
// compacts to where the store was one interval ago, so that watches and paged lists younger than
// that always go on.
#pragma once

#include "base/time.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

struct CompactorOptions {
  Duration interval = Duration::Minutes(5);
};

class Compactor {
 public:
  // The store outlives the compactor.
  explicit Compactor(store::Store& store, CompactorOptions options = {})
      : store_(store), options_(options) {}

  // Runs until it is cancelled. A failure is logged and tried again an interval later.
  rt::Task<Status> Run();

 private:
  store::Store& store_;
  const CompactorOptions options_;
};

}  // namespace berth::apiserver
