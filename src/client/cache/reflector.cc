// SPDX-License-Identifier: Apache-2.0
#include "client/cache/reflector.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "rt/backoff.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::client {

namespace {

// 500 decoded machines * 3.5 KiB = 1.8 MiB at a time, and a few milliseconds per turn of the loop.
constexpr size_t kListPage = 500;

// Changes announced at once: enough to wait for the memory of all together, few enough that it is
// still in the cache when the last one is told.
constexpr size_t kAnnounced = 16;

// A server that restarts is no news; one that stays away is.
constexpr int kFailuresQuiet = 3;

}  // namespace

Reflector::Reflector(rt::Loop& loop,
                     Client& client,
                     const meta::KindInfo& kind,
                     Sink& sink,
                     ReflectorOptions options)
    : loop_(loop),
      client_(client),
      kind_(kind),
      sink_(sink),
      options_(std::move(options)),
      state_(loop) {}

rt::Task<Status> Reflector::Run() {
  rt::Backoff backoff;
  int failures = 0;
  for (;;) {
    const std::string before = resource_version_;
    Status status;
    if (resource_version_.empty()) status = co_await List();
    if (status.ok()) status = co_await Watch();
    if (resource_version_ != before) {
      backoff.Reset();
      failures = 0;
    }
    if (status.Is(Reason::kCancelled)) co_return status;
    if (status.Is(Reason::kExpired)) {
      REACHED("reflector.list_again");
      resource_version_.clear();
      state_.OnWatchEnd();
    } else {
      state_.OnFailure();
      if (++failures > kFailuresQuiet) {
        LOG_WARNING("following {}: {}; trying again", kind_.plural, status.ToString());
      }
    }
    const Duration pause = backoff.Next(loop_.random());
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Status> Reflector::List() {
  ListOptions options{.namespace_ = options_.namespace_,
                      .label_selector = options_.label_selector,
                      .field_selector = options_.field_selector,
                      .detail = options_.detail,
                      .limit = kListPage,
                      .continue_token = "",
                      .resource_version = "",
                      .unreadable = options_.unreadable};
  sink_.OnListBegin();
  std::string revision;
  do {
    CO_TRY(ObjectList page, co_await client_.List(kind_, options));
    for (meta::Object& object : page.items) sink_.OnListed(std::move(object));
    for (Unread& object : page.unread) sink_.OnUnread(std::move(object));
    revision = std::move(page.resource_version);
    options.continue_token = std::move(page.continue_token);
    if (!options.continue_token.empty()) CO_TRY_STATUS(co_await rt::Yield());
  } while (!options.continue_token.empty());
  sink_.OnListEnd();
  resource_version_ = std::move(revision);
  state_.OnListed();
  state_.OnNews();
  co_return OkStatus();
}

rt::Task<Status> Reflector::Watch() {
  WatchOptions options{.namespace_ = options_.namespace_,
                       .label_selector = options_.label_selector,
                       .field_selector = options_.field_selector,
                       .detail = options_.detail,
                       .resource_version = resource_version_};
  CO_TRY(const std::unique_ptr<ObjectWatch> watch,
         co_await client_.Watch(kind_, std::move(options)));
  state_.OnWatchBegin();
  for (;;) {
    CO_TRY(std::vector<WatchEvent> events, co_await watch->Next());
    state_.OnNews();
    for (size_t i = 0; i < events.size(); ++i) {
      if (i % kAnnounced == 0) {
        const size_t count = std::min(kAnnounced, events.size() - i);
        sink_.OnComing(std::span(events).subspan(i, count));
      }
      WatchEvent& event = events[i];
      resource_version_ = event.resource_version;
      if (event.type != WatchEvent::Type::kBookmark) sink_.OnEvent(std::move(event));
    }
  }
}

}  // namespace berth::client
