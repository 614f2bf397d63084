// SPDX-License-Identifier: Apache-2.0
// A Watcher follows several lists at once: it opens one watch per list, cuts the streams into
// events and opens a watch again when the server ends it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/transport.h"
#include "meta/value.h"

namespace berth::cli {

struct WatchedList {
  std::string path;
  Api::Query query;  // selectors; the watcher adds watch=true and resourceVersion
  std::string accept = std::string(kAcceptJson);
  std::string resource_version;  // changes after this
};

struct WatchedEvent {
  size_t list = 0;
  std::string type;  // ADDED, MODIFIED, DELETED; bookmarks stay inside
  meta::Value object;
};

class Watcher {
 public:
  static Result<Watcher> Start(Api& api, std::vector<WatchedList> lists);

  // The next event. Timeout once `limit` has passed without one, or earlier, so that the caller
  // looks at the clock; Expired when the state must be listed again; any other error that the
  // server sends as it is.
  Result<WatchedEvent> Next(std::optional<Duration> limit);

 private:
  Watcher(Api& api, std::vector<WatchedList> lists) : api_(&api), lists_(std::move(lists)) {}
  Status Open();
  // Takes whole lines out of a stream's text.
  Status Take(size_t list, std::string_view bytes);
  Status TakeLine(size_t list, std::string_view line);

  Api* api_;
  std::vector<WatchedList> lists_;
  std::unique_ptr<Streams> streams_;
  std::vector<std::string> partial_;  // per list: the beginning of a line
  std::deque<WatchedEvent> ready_;
  size_t events_since_open_ = 0;
};

}  // namespace berth::cli
