// SPDX-License-Identifier: Apache-2.0
#include "rt/thread_pool.h"

#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "rt/thread_name.h"

namespace berth::rt {

class ThreadPool::Threads {
 public:
  Threads(size_t count, ThreadPool& pool) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([&pool] { pool.Work(); });
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(Options options) : options_(std::move(options)) {
  CHECK(options_.threads > 0);
  CHECK(options_.queue_max > 0);
  threads_ = std::make_unique<Threads>(options_.threads, *this);
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  threads_.reset();
}

Status ThreadPool::Submit(std::string_view name, Loop& loop, Fn job, Fn done) {
  {
    MutexLock lock(mutex_);
    if (queue_.size() >= options_.queue_max) {
      return {Reason::kTooManyRequests,
              fmt::format("job {}: {} jobs are waiting in pool {}, the limit is {}",
                          name,
                          queue_.size(),
                          options_.name,
                          options_.queue_max)};
    }
    queue_.push_back({.name = name, .loop = &loop, .run = std::move(job), .done = std::move(done)});
  }
  wake_.NotifyOne();
  return OkStatus();
}

void ThreadPool::Work() {
  SetThreadName(options_.name);
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    job.run();
    job.run = nullptr;
    job.loop->Post(job.name, std::move(job.done));
  }
}

}  // namespace berth::rt
