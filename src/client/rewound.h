// SPDX-License-Identifier: Apache-2.0
// After a restore the store is behind its hosts: something may run where the store does not know it
// (PROTOCOL 2.4, sequence 20). What hosts still run is taken over where it runs, and only when all
// of them were heard is the store's word on places good again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/binder.h"
#include "rt/task.h"

namespace berth::client {

// An object of the store that a host runs by a placement which the store has lost.
struct Adoption {
  const meta::KindInfo* kind = nullptr;
  ObjectKey key;
  std::string uid;
  int64_t placement = 0;  // as the store has it now
  std::string pool;       // where it runs
  std::string pool_uid;
  Amounts resources;
  std::vector<std::string> consumers;  // of a reservation: UIDs of the machines that have used it
};

class Rewound {
 public:
  virtual ~Rewound() = default;

  // Binds each object to the pool that runs it, whatever it was bound to, under a new placement.
  // Whether it fits is not asked: it is there. Few commits; one verdict per adoption: Conflict if
  // the placement is another one by now, NotFound if the object or the pool is gone.
  virtual rt::Task<std::vector<Status>> AdoptBatch(std::vector<Adoption> adoptions) = 0;
  // The present incarnation is settled: a server that starts does not wait for hosts any more.
  virtual rt::Task<Status> Settle() = 0;
};

}  // namespace berth::client
