// SPDX-License-Identifier: Apache-2.0
#include "rt/asio/loop_thread.h"

#include <thread>

#include "rt/thread_name.h"

namespace berth::rt {

class LoopThread::Thread {
 public:
  template <class F>
  explicit Thread(F body) : thread_(std::move(body)) {}
  ~Thread() { thread_.join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

 private:
  std::thread thread_;
};

void LoopThread::Latch::Wait() {
  MutexLock lock(mutex_);
  while (!open_) opened_.Wait(mutex_);
}

void LoopThread::Latch::Open() {
  // Notified under the lock: the waiter may destroy the latch as soon as it can take it.
  MutexLock lock(mutex_);
  open_ = true;
  opened_.NotifyAll();
}

LoopThread::LoopThread(std::string name) : loop_(std::move(name)), awaited_(loop_) {
  Latch running;
  thread_ = std::make_unique<Thread>([this, &running] {
    SetThreadName(loop_.name());
    loop_.Post("loop_thread.started", [&running] { running.Open(); });
    loop_.Run();
  });
  running.Wait();
}

LoopThread::~LoopThread() {
  loop_.Stop();
  thread_.reset();
}

}  // namespace berth::rt
