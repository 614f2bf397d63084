// SPDX-License-Identifier: Apache-2.0
#include "client/cache/work_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::client {

namespace {

// 50 ms * 2^20 is beyond any maximum.
constexpr int kDoublingsMax = 20;

}  // namespace

WorkQueue::~WorkQueue() {
  for (const auto& [key, delayed] : delayed_) loop_.CancelTimer(delayed.timer);
}

void WorkQueue::Add(const std::string& key) {
  const auto delayed = delayed_.find(key);
  if (delayed != delayed_.end()) {
    loop_.CancelTimer(delayed->second.timer);
    delayed_.erase(delayed);
  }
  if (!queued_.insert(key).second) return;
  if (!in_work_.contains(key)) Push(key);
}

void WorkQueue::Push(const std::string& key) {
  if (!getters_.empty()) {
    Result<std::string> value(key);
    if (getters_.CompleteFirst(std::move(value))) {
      queued_.erase(key);
      in_work_.insert(key);
      return;
    }
  }
  waiting_.push_back({.key = key, .since = loop_.Now()});
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  if (delay <= Duration()) return Add(key);
  if (queued_.contains(key)) return;
  const Time due = loop_.Now() + delay;
  const auto found = delayed_.find(key);
  if (found != delayed_.end()) {
    if (found->second.due <= due) return;
    loop_.CancelTimer(found->second.timer);
    delayed_.erase(found);
  }
  const rt::TimerId timer = loop_.After("client.work_queue", delay, [this, key] {
    delayed_.erase(key);
    Add(key);
  });
  delayed_.emplace(key, Delayed{.timer = timer, .due = due});
}

void WorkQueue::AddAfterFailure(const std::string& key) {
  ++failures_total_;
  const auto [failing, is_first] = failures_.try_emplace(key);
  if (is_first) failing->second.since = loop_.Now();
  const int failures = failing->second.failures++;
  const Duration nominal =
      std::min(options_.backoff_max,
               options_.backoff_initial * (int64_t{1} << std::min(failures, kDoublingsMax)));
  AddAfter(key, loop_.random().Jitter(nominal, 0.1));
}

rt::Task<Result<std::string>> WorkQueue::Get() {
  if (!waiting_.empty()) {
    std::string key = std::move(waiting_.front().key);
    waiting_.pop_front();
    queued_.erase(key);
    in_work_.insert(key);
    co_return key;
  }
  Result<std::string> key = co_await getters_.Wait();
  co_return key;
}

Duration WorkQueue::waiting_longest() const {
  return waiting_.empty() ? Duration() : loop_.Now() - waiting_.front().since;
}

Duration WorkQueue::failing_longest() const {
  Duration longest;
  for (const auto& [key, failing] : failures_) {
    longest = std::max(longest, loop_.Now() - failing.since);
  }
  return longest;
}

void WorkQueue::Done(const std::string& key) {
  CHECK(in_work_.erase(key) == 1) << "work on " << key << " was not begun";
  if (queued_.contains(key)) Push(key);
}

}  // namespace berth::client
