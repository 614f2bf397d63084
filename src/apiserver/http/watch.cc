// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/handlers.h"
#include "base/strings.h"
#include "meta/field_errors.h"
#include "rt/child_context.h"
#include "rt/deadline.h"

namespace berth::apiserver {
namespace {

// A watch without timeoutSeconds ends after 30 to 60 minutes, spread so that clients do not come
// back all at once.
constexpr Duration kWatchTimeoutMin = Duration::Minutes(30);

// Counts a watcher for as long as it lives.
class WatcherCount {
 public:
  explicit WatcherCount(metrics::Gauge& gauge) : gauge_(gauge) { gauge_.Add(1); }
  ~WatcherCount() { gauge_.Add(-1); }
  WatcherCount(const WatcherCount&) = delete;
  WatcherCount& operator=(const WatcherCount&) = delete;

 private:
  metrics::Gauge& gauge_;
};

// Calls as long as it lives.
class VoidHook {
 public:
  VoidHook(CredentialHold& hold, std::function<void()> tell) : hold_(hold) {
    hold_.OnVoid(std::move(tell));
  }
  ~VoidHook() { hold_.OnVoid({}); }
  VoidHook(const VoidHook&) = delete;
  VoidHook& operator=(const VoidHook&) = delete;

 private:
  CredentialHold& hold_;
};

// Adds the line of one event. A line that does not depend on the watcher is encoded once for all of
// them.
Status AppendLine(const ObjectWriter& writer,
                  const RegistryEvent& event,
                  const LinePlace& place,
                  std::vector<Bytes>& parts) {
  const auto form = writer.SharedForm(event);
  if (form.has_value()) {
    if (const Bytes* frame = event.frames->Find(*form)) {
      parts.push_back(*frame);
      return OkStatus();
    }
  }
  std::string text;
  TRY_STATUS(writer.WatchLine(event, place, text));
  parts.emplace_back(text);
  if (form.has_value()) event.frames->Keep(*form, parts.back());
  return OkStatus();
}

// As Kubernetes asks for: one parameter needs the other.
Result<InitialState> ReadInitialState(const Query& query) {
  const std::string_view match = query.Get("resourceVersionMatch");
  meta::FieldErrors errors;
  if (!query.Has("sendInitialEvents")) {
    if (!match.empty()) {
      errors.Forbidden(meta::FieldPath("resourceVersionMatch"),
                       "is forbidden for watch unless sendInitialEvents is given");
    }
    TRY_STATUS(errors.ToStatus("ListOptions", "meta.k8s.io", ""));
    return InitialState::kByVersion;
  }
  TRY(const bool is_told, QueryBool(query, "sendInitialEvents"));
  if (match != "NotOlderThan") {
    errors.Invalid(meta::FieldPath("resourceVersionMatch"),
                   match,
                   "sendInitialEvents needs resourceVersionMatch=NotOlderThan");
  }
  TRY_STATUS(errors.ToStatus("ListOptions", "meta.k8s.io", ""));
  return is_told ? InitialState::kTold : InitialState::kNotTold;
}

}  // namespace

Handlers::Answer Handlers::Watch(CallPtr call) {
  CO_TRY(auto writer, WriterFor(*call));
  WatchStart start;
  CO_TRY(start.selection, ReadSelection(*call));
  start.resource_version = call->query.Get("resourceVersion");
  CO_TRY(start.bookmarks, QueryBool(call->query, "allowWatchBookmarks"));
  CO_TRY(start.initial, ReadInitialState(call->query));
  CO_TRY(const auto seconds, QueryCount(call->query, "timeoutSeconds"));
  const Duration timeout = seconds.value_or(0) > 0
                               ? Duration::Seconds(std::min<int64_t>(*seconds, 24 * 3600))
                               : kWatchTimeoutMin + Duration::Seconds(loop_.random().Between(
                                                        0, kWatchTimeoutMin.seconds()));
  CO_TRY(auto watch, co_await registry_.Watch(StoredKind(*call->info.kind), std::move(start)));
  net::HttpResponse response;
  response.headers.Set("Content-Type", "application/json");
  std::shared_ptr<RegistryWatch> shared = std::move(watch);
  response.stream = [this, call, writer, shared, timeout](net::BodyWriter& body) {
    return StreamWatch(call, writer, shared, timeout, &body);
  };
  co_return response;
}

rt::Task<Status> Handlers::StreamWatch(CallPtr call,
                                       ObjectWriter writer,
                                       std::shared_ptr<RegistryWatch> watch,
                                       Duration timeout,
                                       net::BodyWriter* body) const {
  const WatcherCount count(watchers_);
  const Time end = loop_.Now() + timeout;
  LinePlace place{.is_first = true, .now = {}};
  rt::ChildContext waiting(co_await rt::CurrentContext());
  const VoidHook hook(*call->hold, [&waiting] { waiting.Cancel(); });
  while (true) {
    const Duration left = end - loop_.Now();
    if (left <= Duration()) co_return OkStatus();
    auto next = rt::WithDeadline(watch->Next(), left);
    auto events = co_await next.In(waiting.context());
    std::vector<Bytes> parts;
    if (call->hold->is_void()) {
      parts.emplace_back(writer.ErrorLine(Unauthorized("Unauthorized")));
      co_return co_await body->Write(std::move(parts));
    }
    if (!events.ok()) {
      if (events.status().Is(Reason::kTimeout)) co_return OkStatus();
      if (events.status().Is(Reason::kCancelled)) co_return events.status();
      // The client learns why: an ERROR event, then a clean end.
      parts.emplace_back(writer.ErrorLine(events.status()));
      co_return co_await body->Write(std::move(parts));
    }
    CO_TRY_STATUS(co_await fan_out_.Next());
    place.now = loop_.WallNow();
    for (const auto& event : *events) {
      CO_TRY_STATUS(AppendLine(writer, event, place, parts));
      place.is_first = false;
    }
    CO_TRY_STATUS(co_await body->Write(std::move(parts)));
  }
}

}  // namespace berth::apiserver
