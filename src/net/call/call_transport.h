// SPDX-License-Identifier: Apache-2.0
// A CallTransport is what carries the calls of one connection: HTTP/2, or a simulated wire. Calls
// tell it what they want sent; it counts what all of them hold together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "rt/loop.h"

namespace berth::net {

class CallStream;

class CallTransport {
 public:
  // Of all calls together: messages that nobody has read yet or that are still arriving, and
  // messages that the peer has not taken.
  CallTransport(size_t received_bytes_max, size_t queued_bytes_max)
      : received_bytes_max_(received_bytes_max), queued_bytes_max_(queued_bytes_max) {}
  virtual ~CallTransport() = default;
  CallTransport(const CallTransport&) = delete;
  CallTransport& operator=(const CallTransport&) = delete;

  // From now on; what is held already stays.
  void SetBytesMax(size_t received, size_t queued) {
    received_bytes_max_ = received;
    queued_bytes_max_ = queued;
  }

  virtual rt::Loop& loop() const = 0;
  // The call has something to send: messages, the end of its half, its final status, or just its
  // first word.
  virtual void ResumeSending(CallStream& call) = 0;
  // Breaks the call off; whatever it has queued is dropped right after.
  virtual void SendAbort(CallStream& call, const Status& why) = 0;
  // The peer may send so many bytes more.
  virtual void GiveWindow(CallStream& call, size_t bytes) = 0;

  // For calls: false if all of them together have queued too much. WakeWriters() follows once there
  // is room again.
  bool HasRoomToQueue(size_t bytes);
  void CountQueued(int64_t bytes);
  void CountReceived(int64_t bytes);
  // TooManyRequests once too much is unread.
  Status CheckReceived() const;

 protected:
  virtual void WakeWriters() = 0;

 private:
  size_t received_bytes_max_;
  size_t queued_bytes_max_;
  size_t received_bytes_ = 0;
  size_t queued_bytes_ = 0;
  bool crowded_ = false;  // somebody waits for queued_bytes_ to fall
};

}  // namespace berth::net
