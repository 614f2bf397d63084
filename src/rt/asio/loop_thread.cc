// SPDX-License-Identifier: Apache-2.0
#include "rt/asio/loop_thread.h"

#include "rt/thread_name.h"

namespace berth::rt {

LoopThread::LoopThread(std::string name) : loop_(std::move(name)), awaited_(loop_) {
  std::promise<void> running;
  std::future<void> started = running.get_future();
  thread_ = std::thread([this, &running] {
    SetThreadName(loop_.name());
    loop_.Post("loop_thread.started", [&running] { running.set_value(); });
    loop_.Run();
  });
  started.get();
}

LoopThread::~LoopThread() {
  loop_.Stop();
  thread_.join();
}

}  // namespace berth::rt
