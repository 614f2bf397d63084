// SPDX-License-Identifier: Apache-2.0
// Binder is the only door through which a placement changes: the subresource `binding`. (After a
// restore, what hosts run is taken over through rewound.h.) What makes a bind right is checked
// inside the commit, not before it, so two schedulers, a late cordon or an edit in between cannot
// bind wrongly. All bodies of Client that offer it pass client/conformance.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::client {

// Amounts by name: "cpu" in thousandths, everything else in units; "share" as in fleet/fleet.h.
using Amounts = std::map<std::string, int64_t, std::less<>>;

// One object to bind: a Machine, a Volume, a Bucket or a Reservation.
struct BindItem {
  const meta::KindInfo* kind = nullptr;
  ObjectKey key;
  std::string uid;
  int64_t generation = 0;  // that was decided on
  int64_t placement = 0;   // P: status.placement.epoch as it was decided on; becomes P + 1
  std::string pool;        // name of the MachinePool, VolumePool or BucketPool
  std::string pool_uid;
  Amounts resources;  // what it takes of the pool; kept in status.placement.resources
  // The reservation of its namespace into whose room it goes, of which this uses up one part in the
  // same commit; "" for none. Machines only. Conflict if that has no room for it (any more).
  std::string reservation;
  std::string reservation_uid;
};

// Items that are bound together or not at all: a machine with its joint volumes, a group. A machine
// that goes to a session pool claims all volumes that it names in the same commit; Conflict if
// another machine has one of them. RequestTooLarge beyond what one commit holds, about 40 items.
struct BindRequest {
  std::string holder;  // of the Lease berth-system/scheduler
  int64_t term = 0;    // its leaseTransitions
  std::vector<BindItem> items;
};

// Why an object may lose its pool (G4).
enum class UnbindProof : uint8_t {
  kHostReleased,    // the host said Gone or AssignRefused at this placement
  kFenced,          // PROTOCOL 3.3
  kOperatorFenced,  // needs the verb `fence` on the pool
  kNeverBound,      // the reference was set by a user, no host was ever asked
};

struct UnbindRequest {
  const meta::KindInfo* kind = nullptr;
  ObjectKey key;
  std::string uid;
  int64_t placement = 0;  // P: becomes P + 1
  UnbindProof proof = UnbindProof::kHostReleased;
  std::string reason;  // one word, of the condition Scheduled=False
  std::string message;
};

class Binder {
 public:
  virtual ~Binder() = default;

  // Many requests with few commits; one verdict per request, in order. A verdict's reason says who
  // was right:
  //   Conflict    the object, its generation or placement, or the term is not the one decided on
  //   NotFound    the object or the pool (by UID) is gone
  //   Forbidden   the pool is cordoned, deleting, of another mode, or holds not enough: the cause's
  //               field is "cordoned", "deleting", "mode" or the dimension
  //   Unavailable, Timeout   the outcome is unknown: read the object back (S4)
  virtual rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<BindRequest> requests) = 0;

  // Copies of the model that exist bound from their first moment: the machines of a set. Each item
  // is one: its kind and namespace are the model's, its key names the copy, and its UID will be the
  // copy's, because hosts were asked with it ("": a new one). Its generation and placement are
  // ignored (the placement is 1). Few commits; one verdict per item. BadRequest for machines with
  // volumes: claims are made when they are bound.
  virtual rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                         std::vector<BindItem> items,
                                                         std::string holder,
                                                         int64_t term) = 0;

  // Clears status.placement.pool and poolRef (which stays if its owner had set it and a host was
  // asked: this pool or none), raises the epoch, gives the pool's amounts back, and lets go of what
  // is being deleted: an object leaves the store with its last finalizer. An object that leaves the
  // store in any other way while a session pool has it leaves a tombstone, and so does one that a
  // session pool loses without its host's word (kFenced, kOperatorFenced).
  // Conflict if the placement is another one by now; Forbidden if the proof does not do; ok if the
  // object is gone.
  virtual rt::Task<std::vector<Status>> UnbindBatch(std::vector<UnbindRequest> requests) = 0;
};

}  // namespace berth::client
