// SPDX-License-Identifier: Apache-2.0
#include "net/splice/threaded_splicer.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "rt/run_on.h"

namespace berth::net {

rt::Task<Result<std::unique_ptr<ThreadedSplicer>>> ThreadedSplicer::Start(const OwnedFd* listener,
                                                                          SplicerOptions options,
                                                                          SpliceFigures figures) {
  const int fd = ::fcntl(listener->get(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) co_return Unavailable(std::string("dup: ") + std::strerror(errno));
  std::unique_ptr<ThreadedSplicer> made(new ThreadedSplicer());
  ThreadedSplicer* splicer = made.get();
  rt::MakeTask<Status> start = [splicer, fd, options, figures] {
    return splicer->StartThere(fd, options, figures);
  };
  const Status started = co_await rt::RunOn<Status>(&splicer->visits_, std::move(start));
  CHECK(started.ok());
  co_return made;
}

// The turn of the last visit ends before anything of it is destroyed.
ThreadedSplicer::~ThreadedSplicer() { thread_.reset(); }

rt::Task<Status> ThreadedSplicer::StartThere(int listener,
                                             SplicerOptions options,
                                             SpliceFigures figures) {
  splicer_ = std::make_unique<Splicer>(thread_->loop(), listener, options, figures);
  co_return OkStatus();
}

void ThreadedSplicer::SetTarget(SpliceTarget target) {
  if (is_stopped_) return;
  thread_->loop().Post("net.splice.target", [this, target = std::move(target)]() mutable {
    if (splicer_ != nullptr) splicer_->SetTarget(std::move(target));
  });
}

rt::Task<Status> ThreadedSplicer::Stop() {
  if (std::exchange(is_stopped_, true)) co_return OkStatus();
  rt::MakeTask<Status> stop = [this] { return StopThere(); };
  co_return co_await rt::RunOn<Status>(&visits_, std::move(stop));
}

rt::Task<Status> ThreadedSplicer::StopThere() {
  if (splicer_ != nullptr) CO_TRY_STATUS(co_await splicer_->Stop());
  splicer_.reset();
  co_return OkStatus();
}

}  // namespace berth::net
