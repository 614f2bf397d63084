// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/patience.h"

#include <fmt/core.h>

#include <utility>

#include "cli/failure.h"
#include "cli/objects/watcher.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr Duration kForAWeek = Duration::Hours(7 * 24);

Status OutOfPatience(const ObjectAddress& address, std::string_view waiting_for) {
  const std::string label =
      ObjectLabel(address.resource.ApiVersion(), address.resource.kind, address.name);
  return Advise(Timeout(fmt::format("timed out waiting for {} of {}", waiting_for, label)),
                fmt::format("berth describe {} {}", address.resource.singular, address.name));
}

// The state of one object as a list of at most one, with the revision to watch from.
struct Snapshot {
  std::optional<Value> object;
  std::string resource_version;
};

Result<Snapshot> Look(Api& api, const WatchedList& list) {
  TRY(Value page, api.Get(list.path, list.query));
  Snapshot out;
  out.resource_version = page.GetString({"metadata", "resourceVersion"});
  Value* items = page.Find("items");
  if (items != nullptr && items->is_array() && !items->items().empty()) {
    out.object = std::move(items->items().front());
  }
  return out;
}

}  // namespace

Patience::Patience(const Environment& environment, Duration budget) : environment_(environment) {
  if (budget == Duration()) return;
  end_ = environment.now() + (budget < Duration() ? kForAWeek : budget);
}

std::optional<Duration> Patience::left() const {
  if (!end_) return std::nullopt;
  const Duration left = *end_ - environment_.now();
  return left > Duration() ? left : Duration();
}

Status AwaitObject(Api& api,
                   const ObjectAddress& address,
                   const ObjectTest& test,
                   const Patience& patience,
                   std::string_view waiting_for) {
  WatchedList list{.path = PathOf(address.resource, address.namespace_),
                   .query = {{"fieldSelector", fmt::format("metadata.name={}", address.name)}}};
  while (true) {
    TRY(Snapshot now, Look(api, list));
    TRY(const bool done, test(now.object ? &*now.object : nullptr));
    if (done) return OkStatus();
    list.resource_version = now.resource_version;
    TRY(Watcher watcher, Watcher::Start(api, {list}));
    while (true) {
      const auto left = patience.left();
      if (left && *left == Duration()) return OutOfPatience(address, waiting_for);
      auto event = watcher.Next(left);
      if (!event.ok() && event.status().Is(Reason::kTimeout)) continue;  // no patience is left
      if (!event.ok() && event.status().Is(Reason::kExpired)) break;     // look again
      if (!event.ok()) return event.status();
      TRY(const bool met, test(event->type == "DELETED" ? nullptr : &event->object));
      if (met) return OkStatus();
    }
  }
}

Status AwaitGone(Api& api,
                 const ObjectAddress& address,
                 const std::string& uid,
                 const Patience& patience) {
  std::string wanted = uid;
  const auto gone = [&wanted](const Value* object) -> Result<bool> {
    if (object == nullptr) return true;
    const std::string_view seen = object->GetString({"metadata", "uid"});
    if (wanted.empty()) wanted = seen;
    return seen != wanted;
  };
  return AwaitObject(api, address, gone, patience, "deletion");
}

}  // namespace berth::cli
