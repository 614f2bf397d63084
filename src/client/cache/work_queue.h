// SPDX-License-Identifier: Apache-2.0
// A WorkQueue holds keys waiting to be worked on. A key is in it at most once, and is never worked
// on twice at a time:
//
//   Add ──► waiting ──Get──► in work ──Done──► gone
//              ▲                │ Add meanwhile
//              └──────Done──────┘
//
// It is as large as the number of different keys, which the caller bounds.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::client {

struct WorkQueueOptions {
  // Pauses of a key that fails again and again: 50 ms, 100 ms, ... up to this.
  Duration backoff_initial = Duration::Millis(50);
  Duration backoff_max = Duration::Seconds(30);
};

class WorkQueue {
 public:
  explicit WorkQueue(rt::Loop& loop, WorkQueueOptions options = {})
      : loop_(loop), options_(options) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const std::string& key);
  // Adds the key after `delay`; of several delays of one key the shortest counts.
  void AddAfter(const std::string& key, Duration delay);
  // Adds a key that failed, later each time.
  void AddAfterFailure(const std::string& key);
  // The key succeeded: its next failure is a first one.
  void Forget(const std::string& key) { failures_.erase(key); }

  // The next key; Done must follow. Cancelled.
  rt::Task<Result<std::string>> Get();
  void Done(const std::string& key);

  size_t waiting() const { return waiting_.size(); }
  // How long the key has waited that is next; zero if none waits.
  Duration waiting_longest() const;
  // Keys that failed and have not succeeded since, and for how long the one that began first.
  size_t failing() const { return failures_.size(); }
  Duration failing_longest() const;
  // How often keys have failed, all together.
  uint64_t failures() const { return failures_total_; }
  // Nothing waits, is delayed or in work.
  bool idle() const { return waiting_.empty() && in_work_.empty() && delayed_.empty(); }

 private:
  struct Delayed {
    rt::TimerId timer;
    Time due;
  };
  struct Waiting {
    std::string key;
    Time since;
  };
  struct Failing {
    int failures = 0;
    Time since;  // of the first one
  };
  void Push(const std::string& key);

  rt::Loop& loop_;
  const WorkQueueOptions options_;
  std::deque<Waiting> waiting_;
  std::set<std::string> queued_;  // waiting, or to wait again when their work is done
  std::set<std::string> in_work_;
  std::map<std::string, Delayed> delayed_;
  std::map<std::string, Failing> failures_;
  uint64_t failures_total_ = 0;
  rt::Waiters<Result<std::string>> getters_;
};

}  // namespace berth::client
