// SPDX-License-Identifier: Apache-2.0
// What one HTTP/2 connection may cost, on either end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace berth::net {

struct H2Limits {
  // Calls at once on one connection. As many handlers again may still be ending after resets.
  uint32_t streams_max = 100;
  uint32_t header_list_bytes_max = 16 * 1024;
  // What a peer may send ahead of a reader. 100 streams * 64 KiB = 6.4 MB per connection at worst.
  uint32_t window_bytes = 64 * 1024;
  // Of all calls together: messages that nobody has read yet or that are still arriving. The call
  // that exceeds it ends with TooManyRequests.
  size_t received_bytes_max = 16 * 1024 * 1024;
  // Of all calls together: messages that the peer has not taken.
  size_t queued_bytes_max = 16 * 1024 * 1024;
  // Frames that make work without carrying anything (pings, settings, resets, empty data, window
  // updates): so many at once, so many per second. Real data earns more of them.
  uint32_t control_frames_burst = 1'000;
  uint32_t control_frames_per_second = 100;

  Duration settings_timeout = Duration::Seconds(10);  // for the peer's first frame
  // A server's, whatever else its client says meanwhile: for the header fields of a call that has
  // begun, and for the whole request of a unary call. A manifest of 2 MiB needs 70 KB/s.
  Duration head_timeout = Duration::Seconds(10);
  Duration request_timeout = Duration::Seconds(30);
  // A peer that was silent so long is asked with a ping, and given up without an answer.
  Duration keepalive_interval = Duration::Seconds(20);
  Duration keepalive_timeout = Duration::Seconds(10);
  Duration idle_timeout = Duration::Minutes(5);    // a server closes a connection without calls
  Duration write_timeout = Duration::Seconds(30);  // the connection takes nothing
  Duration stall_timeout = Duration::Seconds(60);  // one call takes nothing: its window is shut
};

// What a server spares for peers of whom it knows nothing: they have shown no certificate, and no
// call has shown yet whose it is (RpcPeer::introduce).
struct AnonymousLimits {
  // One more takes the place of another, unless a whole request of that is being answered. The
  // oldest goes of the address that has most of them, or of its own address if that is full.
  size_t connections_max = 512;
  size_t connections_per_address_max = 64;
  // Of all calls of one connection, as H2Limits' received and queued bytes: 4 requests to join of
  // 64 KiB. 512 connections * 256 KiB = 128 MiB in each direction.
  size_t bytes_max = size_t{256} * 1024;
};

}  // namespace berth::net
