// SPDX-License-Identifier: Apache-2.0
#include "gateway/session.h"

#include <utility>

#include "base/log.h"

namespace berth::gateway {

Session::Session(rt::Loop& loop, net::MessageStream& stream, HostIdentity identity, uint64_t number)
    : scope(loop), loop_(loop), stream_(stream), identity_(std::move(identity)), number_(number) {}

Session::~Session() { *alive_ = false; }

void Session::Send(const agent::ServerMessage& message) {
  if (ended_) return;
  if (!stream_.TryWrite(message.SerializeAsString())) {
    End({.reason = std::string(kLimits),
         .message = "more than " + std::to_string(kOutboxBytesMax) + " bytes wait for the host"});
  }
}

agent::ServerBatch& Session::Queue() {
  if (!flush_posted_) {
    flush_posted_ = true;
    loop_.Post("gateway.flush", [this, alive = alive_] {
      if (!*alive) return;
      flush_posted_ = false;
      Flush();
    });
  }
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

void Session::QueueAssign(agent::Assign assign) {
  assign_bytes_ += assign.ByteSizeLong();
  *Queue().add_assigns() = std::move(assign);
  if (assign_bytes_ >= kAssignBatchBytes) Flush();
}

void Session::Flush() {
  assign_bytes_ = 0;
  if (!queued_.has_batch()) return;
  const agent::ServerMessage message = std::exchange(queued_, {});
  Send(message);
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
