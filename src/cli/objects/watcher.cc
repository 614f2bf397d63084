// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/watcher.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/check.h"
#include "client/http/error_body.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

// One event is one object of at most 1 MiB; as a table with its object it may be three times that.
constexpr size_t kEventBytesMax = 8 << 20;

Request WatchRequest(const WatchedList& list) {
  Request request{.path = list.path, .query = list.query};
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  if (!list.resource_version.empty()) {
    request.query.emplace_back("resourceVersion", list.resource_version);
  }
  request.headers.Set("Accept", list.accept);
  return request;
}

// A table's revision is that of its newest row.
std::string_view RevisionOf(const meta::Value& object) {
  const std::string_view own = object.GetString({"metadata", "resourceVersion"});
  const meta::Value* rows = object.Find("rows");
  if (rows == nullptr || !rows->is_array() || rows->items().empty()) return own;
  const std::string_view row =
      rows->items().back().GetString({"object", "metadata", "resourceVersion"});
  return row.empty() ? own : row;
}

}  // namespace

Result<Watcher> Watcher::Start(Api& api, std::vector<WatchedList> lists) {
  CHECK(!lists.empty());
  Watcher out(api, std::move(lists));
  TRY_STATUS(out.Open());
  return out;
}

Status Watcher::Open() {
  std::vector<Request> requests;
  requests.reserve(lists_.size());
  for (const WatchedList& list : lists_) requests.push_back(WatchRequest(list));
  partial_.assign(lists_.size(), "");
  events_since_open_ = 0;
  streams_.reset();
  TRY(streams_, api_->Open(std::move(requests)));
  return OkStatus();
}

Status Watcher::TakeLine(size_t list, std::string_view line) {
  if (line.empty()) return OkStatus();
  auto event = meta::ParseJson(line, kEventBytesMax);
  if (!event.ok()) return event.status().Wrap("watch");
  const std::string type(event->GetString({"type"}));
  meta::Value* object = event->Find("object");
  if (object == nullptr) return Internal("watch: an event without an object");
  if (type == "ERROR") return client::StatusOfObject(*object);
  if (const auto revision = RevisionOf(*object); !revision.empty()) {
    lists_[list].resource_version = revision;
  }
  ++events_since_open_;
  if (type == "BOOKMARK") return OkStatus();
  ready_.push_back({.list = list, .type = type, .object = std::move(*object)});
  return OkStatus();
}

Status Watcher::Take(size_t list, std::string_view bytes) {
  std::string& partial = partial_[list];
  while (true) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    partial += bytes.substr(0, end);
    TRY_STATUS(TakeLine(list, partial));
    partial.clear();
    bytes.remove_prefix(end + 1);
  }
  partial += bytes;
  if (partial.size() > kEventBytesMax) {
    return Internal(fmt::format("watch: one event is larger than {} MiB", kEventBytesMax >> 20));
  }
  return OkStatus();
}

Result<WatchedEvent> Watcher::Next(std::optional<Duration> limit) {
  while (ready_.empty()) {
    auto chunk = streams_->Next(limit);
    if (!chunk.ok()) return chunk.status();
    if (!chunk->bytes.empty()) {
      TRY_STATUS(Take(chunk->stream, chunk->bytes));
      // Bookmarks come for ever: whoever has a limit looks at the clock between them.
      if (limit.has_value() && ready_.empty()) return Timeout("nothing but bookmarks");
      continue;
    }
    // The server ends every watch after a while; what was not yet seen comes from the new one. A
    // server that ends them at once, without a single event, is not asked in a tight circle.
    if (events_since_open_ == 0) {
      return Unavailable("the server ended the watch without an event");
    }
    TRY_STATUS(Open());
  }
  WatchedEvent out = std::move(ready_.front());
  ready_.pop_front();
  return out;
}

}  // namespace berth::cli
