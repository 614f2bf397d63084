// SPDX-License-Identifier: Apache-2.0
// The BlockingPool of production: a few threads and a bounded queue.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "rt/blocking_pool.h"

namespace berth::rt {

class ThreadPool final : public BlockingPool {
 public:
  struct Options {
    size_t threads = 1;
    size_t queue_max = 1024;  // jobs waiting; one is a name and two functions, about 150 bytes
    std::string name = "blocking";  // of the threads, at most 15 characters are shown
  };
  explicit ThreadPool(Options options);
  // Runs what is queued, then stops. The loops that wait for jobs must still exist.
  ~ThreadPool() override;

 protected:
  Status Submit(std::string_view name, Loop& loop, Fn job, Fn done) override;

 private:
  struct Job {
    std::string_view name;
    Loop* loop;
    Fn run;
    Fn done;
  };
  class Threads;
  void Work();

  const Options options_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::deque<Job> queue_ GUARDED_BY(mutex_);
  std::unique_ptr<Threads> threads_;
};

}  // namespace berth::rt
