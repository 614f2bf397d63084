// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/event_assembler.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "store/etcd/wire.h"

namespace berth::store {

void EventAssembler::FinishRevision() {
  if (open_.empty()) return;
  through_ = open_.front().kv.mod_revision;
  whole_.insert(
      whole_.end(), std::make_move_iterator(open_.begin()), std::make_move_iterator(open_.end()));
  open_.clear();
}

Status EventAssembler::Add(pb::WatchResponse response) {
  if (response.compact_revision() != 0) {
    return Expired(fmt::format("history up to revision {} was compacted, revision {} is next",
                               response.compact_revision(),
                               through_.value + 1));
  }
  if (response.canceled()) {
    return Unavailable("etcd ended the watch: " + (response.cancel_reason().empty()
                                                       ? std::string("it gives no reason")
                                                       : response.cancel_reason()));
  }
  for (pb::Event& event : *response.mutable_events()) {
    const Revision at{event.kv().mod_revision()};
    if (at <= through_) continue;
    if (!open_.empty() && at > open_.front().kv.mod_revision) FinishRevision();
    if (at != through_.Next()) {
      lost_ = true;
      return Unavailable(fmt::format(
          "etcd's watch went from revision {} to {}: something is lost", through_.value, at.value));
    }
    open_.push_back(FromEtcd(std::move(event)));
  }
  if (!response.fragment()) FinishRevision();
  return OkStatus();
}

EventAssembler::Chunk EventAssembler::Take() {
  return {.events = std::exchange(whole_, {}), .through = through_};
}

}  // namespace berth::store
