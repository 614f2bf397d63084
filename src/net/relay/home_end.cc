// SPDX-License-Identifier: Apache-2.0
#include "net/relay/home_end.h"

#include <utility>

#include "base/check.h"
#include "net/call/writable.h"
#include "net/relay/net_end.h"
#include "net/relay/relay.h"

namespace berth::net {

HomeEnd::HomeEnd(rt::Loop& net_loop,
                 std::shared_ptr<NetEnd> net,
                 RpcLimits limits,
                 size_t told_every)
    : net_loop_(net_loop), net_(std::move(net)), limits_(limits), told_every_(told_every) {}
HomeEnd::~HomeEnd() = default;

template <class F>
void HomeEnd::Tell(F words) {
  net_loop_.Post("net.relay.out",
                 [net = net_, words = std::move(words)]() mutable { words(*net); });
}

rt::Task<Result<std::optional<std::string>>> HomeEnd::Read() {
  for (;;) {
    if (!inbox_.empty()) {
      std::optional<std::string> message = std::move(inbox_.front());
      inbox_.pop_front();
      read_bytes_ += message->size();
      if (read_bytes_ >= kReadAheadBytes / 2) {
        Tell([bytes = std::exchange(read_bytes_, 0)](NetEnd& net) { net.Consumed(bytes); });
      }
      co_return message;
    }
    if (end_.has_value() && !end_->ok()) co_return *end_;
    if (end_.has_value()) co_return std::optional<std::string>();
    CHECK(reader_ == nullptr) << "a stream has one reader at a time";
    rt::Leaf<Status> leaf;
    reader_ = &leaf;
    const Status woken = co_await leaf;
    reader_ = nullptr;
    CO_TRY_STATUS(woken);
  }
}

Status HomeEnd::WhyNotWritable(size_t bytes) const {
  const bool is_over = end_.has_value() && !end_->ok();
  return CheckWritable(is_over ? &*end_ : nullptr, writes_done_, bytes, limits_);
}

// One message is always taken, however large. Less than a step may be gone already.
bool HomeEnd::HasRoom(size_t bytes) const {
  return outbox_bytes_ < told_every_ || outbox_bytes_ + bytes <= limits_.outbox_bytes_max;
}

void HomeEnd::Send(std::string message) {
  outbox_bytes_ += message.size();
  Tell([message = std::move(message)](NetEnd& net) mutable { net.Deliver(std::move(message)); });
}

bool HomeEnd::TryWrite(std::string message) {
  if (!WhyNotWritable(message.size()).ok() || !HasRoom(message.size())) return false;
  Send(std::move(message));
  return true;
}

rt::Task<Status> HomeEnd::Write(std::string message) {
  for (;;) {
    CO_TRY_STATUS(WhyNotWritable(message.size()));
    if (HasRoom(message.size())) break;
    CO_TRY_STATUS(co_await writers_.Wait());
  }
  Send(std::move(message));
  co_return OkStatus();
}

void HomeEnd::WritesDone() {
  if (std::exchange(writes_done_, true)) return;
  Tell([](NetEnd& net) { net.WritesDone(); });
}

void HomeEnd::Abort(Status why) {
  if (end_.has_value() && !end_->ok()) return;
  CHECK(!why.ok()) << "a stream is aborted for a reason";
  inbox_.clear();
  Tell([why](NetEnd& net) { net.Abort(why); });
  Ended(std::move(why));
}

void HomeEnd::WakeReader() {
  if (reader_ != nullptr) reader_->Complete(OkStatus());
}

void HomeEnd::Arrived(std::string message) {
  if (end_.has_value()) return;  // aborted meanwhile
  inbox_.push_back(std::move(message));
  WakeReader();
}

void HomeEnd::Ended(Status status) {
  if (end_.has_value() && !end_->ok()) return;
  end_ = std::move(status);
  WakeReader();
  writers_.CompleteAll(OkStatus());
}

void HomeEnd::Taken(size_t bytes) {
  outbox_bytes_ -= bytes;
  writers_.CompleteAll(OkStatus());
}

}  // namespace berth::net
