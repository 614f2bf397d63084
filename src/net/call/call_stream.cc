// SPDX-License-Identifier: Apache-2.0
#include "net/call/call_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/call/call_transport.h"
#include "net/call/writable.h"

namespace berth::net {

CallStream::CallStream(CallTransport& transport, int32_t id, RpcLimits limits)
    : transport_(&transport), id_(id), limits_(limits), assembler_(limits.message_bytes_max) {}

CallStream::~CallStream() {
  CHECK(transport_ == nullptr) << "a stream is destroyed before its transport let it go";
}

rt::Task<Result<std::optional<std::string>>> CallStream::Read() {
  for (;;) {
    if (!inbox_.empty()) {
      std::optional<std::string> message = std::move(inbox_.front());
      inbox_.pop_front();
      inbox_bytes_ -= message->size();
      CountHeld();
      Consume(message->size() + kMessagePrefixBytes);
      co_return message;
    }
    if (end_.has_value() && !end_->ok()) co_return *end_;
    if (peer_done_ || end_.has_value()) co_return std::optional<std::string>();
    // Somebody waits for it: whatever has come of the next message makes room for the rest.
    Consume(unconsumed_);
    CHECK(reader_ == nullptr) << "a stream has one reader at a time";
    rt::Leaf<Status> leaf;
    reader_ = &leaf;
    const Status woken = co_await leaf;
    reader_ = nullptr;
    CO_TRY_STATUS(woken);
  }
}

Status CallStream::WhyNotWritable(size_t bytes) const {
  const Status* over = end_.has_value() ? &*end_ : nullptr;
  return CheckWritable(over, transport_ == nullptr || writes_done_, bytes, limits_);
}

// One message is always taken, however large, as long as the whole connection is not full.
bool CallStream::HasRoom(size_t bytes) const {
  const size_t framed = bytes + kMessagePrefixBytes;
  if (!outbox_.empty() && outbox_bytes_ + framed > limits_.outbox_bytes_max) return false;
  return transport_->HasRoomToQueue(framed);
}

bool CallStream::TryWrite(std::string message) {
  if (!WhyNotWritable(message.size()).ok() || !HasRoom(message.size())) return false;
  Queue(std::move(message));
  return true;
}

rt::Task<Status> CallStream::Write(std::string message) {
  for (;;) {
    CO_TRY_STATUS(WhyNotWritable(message.size()));
    if (HasRoom(message.size())) break;
    CO_TRY_STATUS(co_await writers_.Wait());
  }
  Queue(std::move(message));
  co_return OkStatus();
}

void CallStream::Queue(std::string message) {
  if (outbox_.empty()) progress_ = transport_->loop().Now();
  const size_t framed = message.size() + kMessagePrefixBytes;
  outbox_.push_back(std::move(message));
  outbox_bytes_ += framed;
  transport_->CountQueued(static_cast<int64_t>(framed));
  transport_->ResumeSending(*this);
}

void CallStream::WritesDone() {
  if (over() || std::exchange(writes_done_, true)) return;
  writers_.CompleteAll(OkStatus());
  transport_->ResumeSending(*this);
}

void CallStream::BeginAnswer() {
  if (!over()) transport_->ResumeSending(*this);
}

void CallStream::Finish(const Status& status) {
  if (over() || final_status_.has_value()) return;
  final_status_ = status;
  // Whoever still writes is not the handler any more: its stream is over.
  writes_done_ = true;
  writers_.CompleteAll(OkStatus());
  transport_->ResumeSending(*this);
}

void CallStream::Abort(Status why) {
  if (over()) return;
  CHECK(!why.ok()) << "a stream is aborted for a reason";
  if (transport_ != nullptr) transport_->SendAbort(*this, why);
  DropInbox();
  EndWith(std::move(why));
}

void CallStream::SetDeadline(Duration from_now) {
  deadline_ = transport_->loop().After("h2.deadline", from_now, [this, from_now] {
    deadline_.reset();
    Abort(Timeout("no answer within " + FormatDuration(from_now)));
  });
}

void CallStream::SetLimits(const RpcLimits& limits) {
  limits_ = limits;
  Status fits = assembler_.SetLimit(limits.message_bytes_max);
  for (const std::string& message : inbox_) {
    if (message.size() > limits.message_bytes_max) {
      fits = Status(
          Reason::kRequestTooLarge,
          fmt::format(
              "a message of {} bytes, the limit is {}", message.size(), limits.message_bytes_max));
    }
  }
  if (!fits.ok()) Abort(fits);
}

void CallStream::Receive(std::string_view bytes) {
  unconsumed_ += bytes.size();
  if (over() || peer_done_) {
    Consume(bytes.size());  // for nobody, but the connection's other streams need the room
    return;
  }
  std::list<std::string> complete;
  Status fed = assembler_.Feed(bytes, &complete);
  for (const std::string& message : complete) inbox_bytes_ += message.size();
  inbox_.splice(inbox_.end(), complete);
  CountHeld();
  if (fed.ok()) fed = transport_->CheckReceived();
  if (!fed.ok()) {
    Abort(std::move(fed));
    return;
  }
  if (!inbox_.empty()) {
    WakeReader();
  } else if (reader_ != nullptr) {
    Consume(unconsumed_);
  }
}

void CallStream::ReceiveEnd() {
  if (over()) return;
  if (!assembler_.is_between_messages()) {
    Abort(BadRequest("the peer's last message is cut"));
    return;
  }
  peer_done_ = true;
  WakeReader();
}

void CallStream::EndWith(Status status) {
  if (over()) return;
  if (status.ok() && !assembler_.is_between_messages()) {
    status = Unavailable("the peer's last message is cut");
  }
  end_ = std::move(status);
  Over();
}

void CallStream::Detach(Status status) {
  // A handler may have finished well without having read everything; that is no loss.
  const bool finished = final_status_.has_value() && outbox_.empty();
  EndWith(finished ? OkStatus() : std::move(status));
  DropOutbox();
  if (inbox_.empty()) assembler_ = MessageAssembler(limits_.message_bytes_max);
  transport_->CountReceived(-static_cast<int64_t>(std::exchange(held_, 0)));
  transport_ = nullptr;
}

void CallStream::Over() {
  DropOutbox();
  if (deadline_.has_value()) {
    transport_->loop().CancelTimer(*deadline_);
    deadline_.reset();
  }
  // First: what a handler waits for on its stream ends as everything else it waits for.
  if (over_fn_) std::exchange(over_fn_, nullptr)();
  WakeReader();
  writers_.CompleteAll(OkStatus());
}

std::optional<Time> CallStream::stuck_since() const {
  return outbox_.empty() ? std::nullopt : std::optional<Time>(progress_);
}

size_t CallStream::Fill(std::span<char> into) {
  size_t filled = 0;
  while (filled < into.size() && !outbox_.empty()) {
    const std::string& message = outbox_.front();
    std::string_view rest;
    std::string prefix;
    if (front_sent_ < kMessagePrefixBytes) {
      prefix = MessagePrefix(message.size());
      rest = std::string_view(prefix).substr(front_sent_);
    } else {
      rest = std::string_view(message).substr(front_sent_ - kMessagePrefixBytes);
    }
    const size_t taken = std::min(rest.size(), into.size() - filled);
    std::memcpy(into.data() + filled, rest.data(), taken);
    filled += taken;
    front_sent_ += taken;
    if (front_sent_ == message.size() + kMessagePrefixBytes) {
      outbox_bytes_ -= front_sent_;
      transport_->CountQueued(-static_cast<int64_t>(front_sent_));
      front_sent_ = 0;
      outbox_.pop_front();
    }
  }
  if (filled > 0) {
    progress_ = transport_->loop().Now();
    writers_.CompleteAll(OkStatus());
  }
  return filled;
}

void CallStream::DropOutbox() {
  if (outbox_bytes_ > 0) transport_->CountQueued(-static_cast<int64_t>(outbox_bytes_));
  outbox_bytes_ = 0;
  front_sent_ = 0;
  outbox_.clear();
}

void CallStream::DropInbox() {
  inbox_.clear();
  inbox_bytes_ = 0;
  assembler_ = MessageAssembler(limits_.message_bytes_max);
  CountHeld();
  Consume(unconsumed_);
}

void CallStream::CountHeld() {
  const size_t now = inbox_bytes_ + assembler_.held_bytes();
  if (transport_ == nullptr) return;
  transport_->CountReceived(static_cast<int64_t>(now) - static_cast<int64_t>(held_));
  held_ = now;
}

void CallStream::Consume(size_t bytes) {
  const size_t given = std::min(bytes, unconsumed_);
  if (given == 0) return;
  unconsumed_ -= given;
  if (transport_ != nullptr) transport_->GiveWindow(*this, given);
}

void CallStream::WakeReader() {
  if (reader_ != nullptr) reader_->Complete(OkStatus());
}

}  // namespace berth::net
