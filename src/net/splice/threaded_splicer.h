// SPDX-License-Identifier: Apache-2.0
// A Splicer on a thread of its own: thousands of connections take nothing from the loop that serves
// everything else.
#pragma once

#include <memory>

#include "net/owned_fd.h"
#include "net/splice/splicer.h"
#include "rt/asio/loop_thread.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class ThreadedSplicer {
 public:
  // Takes connections off `listener`, which stays the caller's and listens on when this has
  // stopped. Everything here is used on the caller's loop.
  static rt::Task<Result<std::unique_ptr<ThreadedSplicer>>> Start(const OwnedFd* listener,
                                                                  SplicerOptions options,
                                                                  SpliceFigures figures);
  // Ends the thread. REQUIRES: Stop() was awaited.
  ~ThreadedSplicer();

  // As Splicer's, a moment later; nothing after Stop().
  void SetTarget(SpliceTarget target);
  rt::Task<Status> Stop();

 private:
  ThreadedSplicer() = default;
  rt::Task<Status> StartThere(int listener, SplicerOptions options, SpliceFigures figures);
  rt::Task<Status> StopThere();

  bool is_stopped_ = false;
  std::unique_ptr<Splicer> splicer_;  // on the thread
  std::unique_ptr<rt::LoopThread> thread_ = std::make_unique<rt::LoopThread>("passing");
  rt::TaskScope visits_{thread_->loop()};  // on the thread
};

}  // namespace berth::net
