// SPDX-License-Identifier: Apache-2.0
#include "net/relay/net_end.h"

#include <utility>

#include "net/relay/home_end.h"
#include "net/relay/relay.h"

namespace berth::net {

NetEnd::NetEnd(rt::Loop& net_loop, rt::Loop& home_loop, MessageStream& stream, size_t told_every)
    : home_loop_(home_loop), stream_(stream), told_every_(told_every), pumps_(net_loop) {
  written_.Set();
}

template <class F>
void NetEnd::Tell(F words) {
  home_loop_.Post("net.relay.in",
                  [home = home_, words = std::move(words)]() mutable { words(*home); });
}

void NetEnd::Start(std::shared_ptr<HomeEnd> home) {
  home_ = std::move(home);
  pumps_.Spawn("net.relay.read", ReadAll());
}

rt::Task<Status> NetEnd::ReadAll() {
  for (;;) {
    Result<std::optional<std::string>> read = co_await stream_.Read();
    if (read.status().Is(Reason::kCancelled)) co_return OkStatus();  // Close(): nobody listens
    if (!read.ok() || !read->has_value()) {
      Tell([status = read.status()](HomeEnd& home) { home.Ended(status); });
      co_return OkStatus();
    }
    ahead_bytes_ += (*read)->size();
    Tell(
        [message = **std::move(read)](HomeEnd& home) mutable { home.Arrived(std::move(message)); });
    if (ahead_bytes_ < kReadAheadBytes) continue;
    may_read_.Reset();
    CO_TRY_STATUS(co_await may_read_.Wait());
  }
}

void NetEnd::Consumed(size_t bytes) {
  ahead_bytes_ -= bytes;
  if (ahead_bytes_ < kReadAheadBytes) may_read_.Set();
}

void NetEnd::Deliver(std::string message) {
  if (home_ == nullptr) return;
  outbox_.push_back(std::move(message));
  if (!written_.is_set()) return;
  written_.Reset();
  pumps_.Spawn("net.relay.write", WriteAll());
}

rt::Task<Status> NetEnd::WriteAll() {
  Status status;
  while (!outbox_.empty() && status.ok()) {
    taken_bytes_ += outbox_.front().size();
    std::string message = std::move(outbox_.front());
    outbox_.pop_front();
    status = co_await stream_.Write(std::move(message));
    if (status.ok() && taken_bytes_ >= told_every_) {
      Tell([bytes = std::exchange(taken_bytes_, 0)](HomeEnd& home) { home.Taken(bytes); });
    }
  }
  outbox_.clear();
  written_.Set();
  co_return OkStatus();  // a lost stream ends its reads, which the handler hears of
}

void NetEnd::WritesDone() {
  if (home_ != nullptr) stream_.WritesDone();
}

void NetEnd::Abort(Status why) {
  if (home_ != nullptr) stream_.Abort(std::move(why));
}

rt::Task<Status> NetEnd::Flush() { return written_.Wait(); }

rt::Task<Status> NetEnd::Close() {
  CO_TRY_STATUS(co_await pumps_.Close());
  home_.reset();
  co_return OkStatus();
}

}  // namespace berth::net
