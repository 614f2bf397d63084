// SPDX-License-Identifier: Apache-2.0
#include "net/call/call_transport.h"

#include <fmt/core.h>

namespace berth::net {

bool CallTransport::HasRoomToQueue(size_t bytes) {
  const bool room = queued_bytes_ == 0 || queued_bytes_ + bytes <= queued_bytes_max_;
  crowded_ = crowded_ || !room;
  return room;
}

void CallTransport::CountQueued(int64_t bytes) {
  queued_bytes_ = static_cast<size_t>(static_cast<int64_t>(queued_bytes_) + bytes);
  if (!crowded_ || queued_bytes_ > queued_bytes_max_ / 2) return;
  crowded_ = false;
  WakeWriters();
}

void CallTransport::CountReceived(int64_t bytes) {
  received_bytes_ = static_cast<size_t>(static_cast<int64_t>(received_bytes_) + bytes);
}

Status CallTransport::CheckReceived() const {
  if (received_bytes_ <= received_bytes_max_) return OkStatus();
  return {Reason::kTooManyRequests,
          fmt::format("{} bytes of unread messages on one connection, the limit is {}",
                      received_bytes_,
                      received_bytes_max_)};
}

}  // namespace berth::net
