// SPDX-License-Identifier: Apache-2.0
// An EventStream is one watch of all keys of an etcd after a revision. It asks etcd for more only
// when somebody reads. On-loop only; the link outlives it.
#pragma once

#include <memory>

#include "base/result.h"
#include "rt/task.h"
#include "store/etcd/etcd_link.h"
#include "store/etcd/event_assembler.h"
#include "store/store.h"

namespace berth::store {

class EventStream {
 public:
  // Ok once etcd has accepted the watch. Whether `after` was compacted shows at the first Read().
  static rt::Task<Result<std::unique_ptr<EventStream>>> Open(EtcdLink* link, Revision after);

  // At least one revision more. Errors are final: Expired if the next revision was compacted,
  // Unavailable if the connection is lost or something is missing (lost()). A cancelled read loses
  // nothing.
  rt::Task<Result<EventAssembler::Chunk>> Read();
  bool lost() const { return assembler_.lost(); }
  // Ends a Read() in progress with Unavailable.
  void Abort() { stream_->Abort(Unavailable("the watch was ended by its owner")); }

 private:
  EventStream(std::unique_ptr<EtcdLink::Stream> stream, Revision after)
      : stream_(std::move(stream)), assembler_(after) {}
  rt::Task<Status> ReadOne(bool* created);

  std::unique_ptr<EtcdLink::Stream> stream_;
  EventAssembler assembler_;
};

}  // namespace berth::store
