// SPDX-License-Identifier: Apache-2.0
// A process full of clients that no server likes: thousands that watch, some that list everything
// in a loop, one that fetches documents in a loop, some that connect and say nothing, some that ask
// for a lot, lists or watches, and never read. A process of its own, so that what they compute is
// not in the way of those that are measured.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {

struct AbuseCounts {
  int watchers = 2'000;
  int listers = 1;
  int readers = 1;   // of documents: OpenAPI, discovery, metrics
  int silent = 500;  // connections that say nothing
  int stalled = 31;  // lists that are never read
  int stalled_watches = 31;
};

// In memory that both processes see.
struct AbuseBoard {
  std::atomic<int32_t> watching{0};
  std::atomic<int32_t> silent{0};
  std::atomic<int32_t> stalled{0};
  std::atomic<int32_t> stalled_watches{0};
  std::atomic<int64_t> lists{0};
  std::atomic<int64_t> documents{0};
  std::atomic<int64_t> events{0};
  std::atomic<int64_t> refused{0};  // answers with 429
  std::atomic<bool> has_begun{false};
};

class AbuseProcess {
 public:
  using NewClient =
      std::function<Result<std::unique_ptr<net::HttpClient>>(rt::AsioLoop& loop, size_t most)>;
  struct Options {
    AbuseCounts counts;
    uint16_t port = 0;      // of the server, on 127.0.0.1
    std::string all;        // what is listed
    std::string watched;    // what is watched
    std::string watch_all;  // what is watched and never read: begins with all that is there
    NewClient new_client;
  };
  static Result<std::unique_ptr<AbuseProcess>> Start(const Options& options);
  // SIGKILL and wait: they do not say goodbye.
  ~AbuseProcess();
  AbuseProcess(const AbuseProcess&) = delete;
  AbuseProcess& operator=(const AbuseProcess&) = delete;

  const AbuseBoard& board() const { return *board_; }

 private:
  AbuseProcess(pid_t pid, AbuseBoard* board) : pid_(pid), board_(board) {}
  pid_t pid_;
  AbuseBoard* board_;
};

}  // namespace berth::app
