// SPDX-License-Identifier: Apache-2.0
// An EventAssembler makes whole transactions out of what a watch of all keys delivers. etcd cuts
// large answers anywhere, so a revision is held back until its last event is certain to be there.
// Every revision of an etcd has an event: one that is missing was lost, and that is found here.
// Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "etcd/v3/rpc.pb.h"
#include "store/store.h"

namespace berth::store {

class EventAssembler {
 public:
  // Revisions up to `after` are dropped.
  explicit EventAssembler(Revision after) : through_(after) {}

  // An error is final: Expired if etcd has compacted what comes next, Unavailable if the watch was
  // ended or revisions are missing.
  Status Add(::berth::etcd::v3::WatchResponse response);

  struct Chunk {
    std::vector<Event> events;  // whole transactions, in order
    Revision through;           // all of them up to here
  };
  // What is whole since the last time.
  Chunk Take();
  // Revisions were missing.
  bool lost() const { return lost_; }

 private:
  void FinishRevision();

  Revision through_;          // the last revision that is whole
  std::vector<Event> whole_;  // up to through_, not taken yet
  std::vector<Event> open_;   // of through_ + 1, perhaps not all of them
  bool lost_ = false;
};

}  // namespace berth::store
