// SPDX-License-Identifier: Apache-2.0
// A ClusterFeed tells one reader what happens to machines and pools: from the present state, or
// from a cursor on. Everything comes from the store, so the next server goes on where this one
// stopped.
//
// Invariant: a cursor that was sent with a message covers nothing that was not sent before it. What
// comes after it may have been sent already: at least once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/registry.h"
#include "apiserver/scheduling/cursor.h"
#include "apiserver/scheduling/outlet.h"
#include "apiserver/scheduling/workload_status.h"
#include "base/result.h"
#include "rt/child_context.h"
#include "rt/task.h"

namespace berth::apiserver {

class ClusterFeed {
 public:
  struct Options {
    std::string namespace_;  // of machines; "": all
    bool wants_machines = true;
    bool wants_pools = true;
    Cursor cursor;
    // Called once, when the present state has been told and the changes of all that is wanted are
    // being followed.
    std::function<void()> begun;
  };
  // Both outlive the feed.
  ClusterFeed(Registry& registry, Outlet& outlet, Options options)
      : registry_(registry),
        outlet_(outlet),
        options_(std::move(options)),
        cursor_(options_.cursor) {}

  // Until it is cancelled. Expired if history no longer reaches back to the cursor, or the reader
  // fell too far behind.
  rt::Task<Status> Run();

 private:
  using Position = std::optional<store::Revision> Cursor::*;

  rt::Task<Status> TellState();
  rt::Task<Status> TellAll(const meta::KindInfo& kind, Position position);
  rt::Task<Status> Follow(const meta::KindInfo& kind, Position position);
  rt::Task<Status> TellBatch(Position position, std::vector<RegistryEvent> events);
  Result<std::optional<proto::ClusterEvent>> Translate(Position position,
                                                       const RegistryEvent& event);
  std::optional<proto::ClusterEvent> TranslatePool(const apis::compute::MachinePool& pool,
                                                   RegistryEvent::Type type);
  rt::Task<Status> Tell(proto::ClusterEvent event, Cursor cursor);

  Registry& registry_;
  Outlet& outlet_;
  const Options options_;
  Cursor cursor_;        // everything up to here was sent
  size_t to_begin_ = 0;  // what is wanted and not yet followed
  // What was said of each pool, by UID: most writes of a pool change nothing of it. 10,000 pools *
  // 100 bytes = 1 MB.
  std::map<std::string, std::pair<proto::ClusterEvent::Type, std::string>> pools_;
};

}  // namespace berth::apiserver
