// SPDX-License-Identifier: Apache-2.0
#include "gateway/session.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <utility>

#include "base/log.h"

namespace berth::gateway {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kLengthDelimited = 2;  // of protobuf's wire types

// Tag and length of an embedded message; its bytes follow.
void AppendField(int number, size_t size, std::string& out) {
  std::array<uint8_t, 16> head{};
  const uint32_t tag = (static_cast<uint32_t>(number) << 3) | kLengthDelimited;
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(tag, head.data());
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  out.append(head.begin(), head.begin() + (end - head.data()));
}

// Of a field of `size` bytes of content whose number is small, with its tag and length.
size_t FieldSize(size_t size) { return 1 + CodedOutputStream::VarintSize64(size) + size; }

}  // namespace

Session::Session(rt::Loop& loop, net::MessageStream& stream, HostIdentity identity, uint64_t number)
    : began(loop.Now()),
      scope(loop),
      loop_(loop),
      stream_(stream),
      identity_(std::move(identity)),
      number_(number) {}

Session::~Session() { *alive_ = false; }

void Session::SendBytes(std::string message) {
  if (ended_) return;
  if (!stream_.TryWrite(std::move(message))) {
    End({.reason = std::string(kLimits),
         .message = "more than " + std::to_string(kOutboxBytesMax) + " bytes wait for the host"});
  }
}

void Session::PostFlush() {
  if (flush_posted_) return;
  flush_posted_ = true;
  loop_.Post("gateway.flush", [this, alive = alive_] {
    if (!*alive) return;
    flush_posted_ = false;
    Flush();
  });
}

agent::ServerBatch& Session::Queue() {
  PostFlush();
  return *queued_.mutable_batch();
}

void Session::QueueGrant(agent::Grant grant) {
  *queued_.mutable_batch()->mutable_grant() = std::move(grant);
  if (flush_posted_ || grant_timed_) return;
  grant_timed_ = true;
  loop_.After("gateway.grant", kGrantPause, [this, alive = alive_] {
    if (!*alive) return;
    grant_timed_ = false;
    Flush();
  });
}

void Session::QueueAssign(std::string_view assign) {
  PostFlush();
  AppendField(agent::ServerMessage::kBatchFieldNumber, FieldSize(assign.size()), assigns_);
  AppendField(agent::ServerBatch::kAssignsFieldNumber, assign.size(), assigns_);
  assigns_ += assign;
  if (assigns_.size() >= kAssignBatchBytes) Flush();
}

void Session::Flush() {
  if (!queued_.has_batch() && assigns_.empty()) return;
  // Nothing is kept for the next time: most sessions say little, and there are thousands.
  std::string message = std::exchange(queued_, {}).SerializeAsString();
  message += std::exchange(assigns_, {});
  SendBytes(std::move(message));
}

void Session::End(Refusal refusal) {
  if (ended_) return;
  Flush();
  if (ended_) return;  // the flush ended it
  agent::ServerMessage message;
  agent::Refused& refused = *message.mutable_refused();
  refused.set_reason(refusal.reason);
  refused.set_message(refusal.message);
  refused.set_retry_after_ms(static_cast<uint64_t>(refusal.retry_after.millis()));
  const bool is_told = stream_.TryWrite(message.SerializeAsString());
  LOG_INFO("session {} of host {} ends: {}: {}{}",
           number_,
           host(),
           refusal.reason,
           refusal.message,
           is_told ? "" : " (the host takes nothing)");
  ended_ = std::move(refusal);
  if (reader_ != nullptr) reader_->Cancel();
}

void Session::Conclude(Refusal refusal) {
  if (ended_) return;
  LOG_INFO("session {} of host {} ends: {}: {}", number_, host(), refusal.reason, refusal.message);
  ended_ = std::move(refusal);
}

bool Session::Admit(size_t bytes, Time now) {
  last_word = now;
  if (challenge != nullptr) challenge->Set();
  if (messages_.Take(now) && bytes_.Take(now, static_cast<double>(bytes))) return true;
  Strike("messages faster than allowed");
  return false;
}

void Session::Strike(std::string_view what) {
  if (strikes_.Take(loop_.Now())) return;
  End({.reason = std::string(kLimits), .message = "too often " + std::string(what)});
}

void Session::MarkDirty(const std::string& uid, const meta::Object* object) {
  std::optional<meta::Object>& kept = dirty_[uid];
  kept.reset();
  if (object != nullptr && dirty_.size() <= kObjectsKept) kept = *object;
}

}  // namespace berth::gateway
