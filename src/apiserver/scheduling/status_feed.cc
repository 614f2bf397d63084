// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/status_feed.h"

#include <utility>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/scheduling/workload.h"
#include "rt/chaos.h"

namespace berth::apiserver {

using apis::compute::kMachineKind;
using apis::compute::Machine;

rt::Task<Result<store::Revision>> PresentRevision(Registry& registry, const meta::KindInfo& kind) {
  ListRequest request;
  request.limit = 1;
  request.wants_remaining = false;
  CO_TRY(const ListPage page, co_await registry.List(kind, std::move(request)));
  co_return page.revision;
}

rt::Task<Status> StatusFeed::Run() {
  while (!is_gone_) {
    CO_TRY(const std::unique_ptr<RegistryWatch> watch, co_await Begin());
    if (!std::exchange(has_begun_, true)) begun_();
    while (!is_gone_) {
      const auto events = co_await watch->Next();
      if (events.status().Is(Reason::kExpired)) break;  // begin again with what is there
      CO_TRY_STATUS(events.status());
      for (const RegistryEvent& event : *events) CO_TRY_STATUS(co_await TellEvent(event));
    }
  }
  co_return OkStatus();
}

// The watch begins before the state that is told, so nothing is missed between the two; what it
// brings of before is skipped.
rt::Task<Result<std::unique_ptr<RegistryWatch>>> StatusFeed::Begin() {
  const bool is_first = last_.metadata.uid.empty();
  CO_TRY(const store::Revision present, co_await PresentRevision(registry_, kMachineKind));
  WatchStart start;
  start.selection.namespace_ = key_.namespace_;
  start.selection.fields = meta::FieldSelector({{.field = "metadata.name", .value = key_.name}});
  start.resource_version = FormatResourceVersion(present);
  start.bookmarks = true;
  CO_TRY(auto watch, co_await registry_.Watch(kMachineKind, std::move(start)));
  const auto stored = co_await registry_.Get(kMachineKind, key_, "");
  if (!stored.ok() && !(stored.status().Is(Reason::kNotFound) && !is_first)) {
    co_return stored.status();
  }
  if (stored.ok()) {
    CO_TRY(const meta::Object object, DecodeFor(kMachineKind, *stored));
    if (is_first && !IsInstance(object)) {
      co_return NotFound("machine " + key_.namespace_ + "/" + key_.name +
                         " was not scheduled by this service");
    }
    if (is_first || object.metadata().uid == last_.metadata.uid) {
      last_ = object.as<Machine>();
      seen_ = stored->revision;
      CO_TRY_STATUS(co_await Tell(StatusOf(last_)));
      co_return watch;
    }
  }
  REACHED("scheduling.gone_while_away");
  is_gone_ = true;
  CO_TRY_STATUS(co_await Tell(GoneStatusOf(last_)));
  co_return watch;
}

rt::Task<Status> StatusFeed::TellEvent(RegistryEvent event) {
  if (is_gone_ || event.object.revision <= seen_) co_return OkStatus();
  if (event.type == RegistryEvent::Type::kBookmark) co_return OkStatus();
  CO_TRY(const meta::Object object, DecodeFor(kMachineKind, event.object));
  seen_ = event.object.revision;
  if (event.type == RegistryEvent::Type::kDeleted || object.metadata().uid != last_.metadata.uid) {
    is_gone_ = true;
    co_return co_await Tell(GoneStatusOf(last_));
  }
  last_ = object.as<Machine>();
  co_return co_await Tell(StatusOf(last_));
}

rt::Task<Status> StatusFeed::Tell(proto::WorkloadStatus status) {
  std::string message = status.SerializeAsString();
  if (message == told_) co_return OkStatus();
  told_ = message;
  co_return co_await outlet_.Send(std::move(message));
}

}  // namespace berth::apiserver
