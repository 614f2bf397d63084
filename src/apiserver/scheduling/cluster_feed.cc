// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/cluster_feed.h"

#include <optional>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/loopback_client.h"
#include "rt/chaos.h"
#include "rt/join_all.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::compute::Machine;
using apis::compute::MachinePool;
using proto::ClusterEvent;

// Ends both readers with the first one's end.
rt::Task<Status> EndTogether(rt::Task<Status> task, rt::ChildContext* both, Status* end) {
  const Status status = co_await task.In(both->context());
  if (end->ok()) *end = status;
  both->Cancel();
  co_return OkStatus();
}

Status TooOld(const Status& why, const std::string& cursor) {
  return Expired("cursor " + cursor + " cannot be gone on from: " + std::string(why.message()) +
                 "; watch without a cursor to begin with the present state");
}

}  // namespace

rt::Task<Status> ClusterFeed::Run() {
  CO_TRY_STATUS(co_await TellState());
  Status end;
  {
    rt::ChildContext both(co_await rt::CurrentContext());
    std::vector<rt::Task<Status>> readers;
    if (options_.wants_machines) {
      readers.push_back(EndTogether(Follow(kMachineKind, &Cursor::machines), &both, &end));
    }
    if (options_.wants_pools) {
      readers.push_back(EndTogether(Follow(kMachinePoolKind, &Cursor::pools), &both, &end));
    }
    to_begin_ = readers.size();
    const auto ends = co_await rt::JoinAll(std::move(readers));
    CHECK(!ends.empty());
  }
  co_return end;
}

rt::Task<Status> ClusterFeed::TellState() {
  const bool machines = options_.wants_machines && !cursor_.machines;
  const bool pools = options_.wants_pools && !cursor_.pools;
  if (!machines && !pools) co_return OkStatus();
  // Pools first: what is said of machines names them.
  if (pools) CO_TRY_STATUS(co_await TellAll(kMachinePoolKind, &Cursor::pools));
  if (machines) CO_TRY_STATUS(co_await TellAll(kMachineKind, &Cursor::machines));
  ClusterEvent synced;
  synced.set_type(ClusterEvent::SYNCED);
  co_return co_await Tell(std::move(synced), cursor_);
}

rt::Task<Status> ClusterFeed::TellAll(const meta::KindInfo& kind, Position position) {
  ListRequest request;
  if (position == &Cursor::machines) request.selection.namespace_ = options_.namespace_;
  request.wants_remaining = false;
  CO_TRY(ListPage page, co_await registry_.List(kind, std::move(request)));
  for (StoredObject& object : page.items) {
    const RegistryEvent event{.type = RegistryEvent::Type::kAdded, .object = std::move(object)};
    CO_TRY(auto translated, Translate(position, event));
    // Whoever stops here begins again: a part of the state is nothing to go on from.
    if (translated) CO_TRY_STATUS(co_await Tell(*std::move(translated), Cursor()));
  }
  cursor_.*position = page.revision;
  co_return OkStatus();
}

rt::Task<Status> ClusterFeed::Follow(const meta::KindInfo& kind, Position position) {
  WatchStart start;
  if (position == &Cursor::machines) start.selection.namespace_ = options_.namespace_;
  start.resource_version = FormatResourceVersion(*(cursor_.*position));
  start.bookmarks = true;
  auto watch = co_await registry_.Watch(kind, std::move(start));
  // Timeout: the cursor is ahead of the store, which is another one than it came from.
  if (watch.status().Is(Reason::kExpired) || watch.status().Is(Reason::kTimeout)) {
    REACHED("scheduling.cursor_expired");
    co_return TooOld(watch.status(), cursor_.ToString());
  }
  CO_TRY_STATUS(watch.status());
  if (--to_begin_ == 0) options_.begun();
  for (;;) {
    auto events = co_await (*watch)->Next();
    if (events.status().Is(Reason::kExpired)) co_return TooOld(events.status(), cursor_.ToString());
    CO_TRY_STATUS(events.status());
    CO_TRY_STATUS(co_await TellBatch(position, *std::move(events)));
  }
}

rt::Task<Status> ClusterFeed::TellBatch(Position position, std::vector<RegistryEvent> events) {
  for (size_t i = 0; i < events.size(); ++i) {
    const store::Revision revision = events[i].object.revision;
    // A commit of several objects is covered with its last one.
    const bool is_last = i + 1 == events.size() || events[i + 1].object.revision != revision;
    CO_TRY(auto translated, Translate(position, events[i]));
    if (translated) {
      Cursor cursor = cursor_;
      if (is_last) cursor.*position = revision;
      CO_TRY_STATUS(co_await Tell(*std::move(translated), cursor));
    }
    if (is_last) cursor_.*position = revision;
  }
  co_return OkStatus();
}

Result<std::optional<ClusterEvent>> ClusterFeed::Translate(Position position,
                                                           const RegistryEvent& event) {
  if (event.type == RegistryEvent::Type::kBookmark) {
    ClusterEvent progress;
    progress.set_type(ClusterEvent::PROGRESS);
    return std::optional(progress);
  }
  if (position == &Cursor::machines) {
    TRY(const meta::Object object, DecodeFor(kMachineKind, event.object));
    const auto& machine = object.as<Machine>();
    return std::optional(EventOf(event.type == RegistryEvent::Type::kDeleted ? GoneStatusOf(machine)
                                                                             : StatusOf(machine)));
  }
  TRY(const meta::Object object, DecodeFor(kMachinePoolKind, event.object));
  return TranslatePool(object.as<MachinePool>(), event.type);
}

std::optional<ClusterEvent> ClusterFeed::TranslatePool(const MachinePool& pool,
                                                       RegistryEvent::Type type) {
  if (type == RegistryEvent::Type::kDeleted) {
    pools_.erase(pool.metadata.uid);
    return RemovedEventOf(pool);
  }
  std::optional<ClusterEvent> event = EventOf(pool);
  if (!event) return std::nullopt;
  auto& said = pools_[pool.metadata.uid];
  std::pair now(event->type(), event->pool().reason());
  if (said == now) return std::nullopt;
  said = std::move(now);
  return event;
}

rt::Task<Status> ClusterFeed::Tell(ClusterEvent event, Cursor cursor) {
  event.set_cursor(cursor.ToString());
  co_return co_await outlet_.Send(event.SerializeAsString());
}

}  // namespace berth::apiserver
