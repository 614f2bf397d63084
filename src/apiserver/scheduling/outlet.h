// SPDX-License-Identifier: Apache-2.0
// An Outlet is the writing end of one long stream. Whoever lost the right to read is told so with
// the next message instead of it; a reader that takes nothing is cut off, and told where to go on.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "rt/task.h"

namespace berth::apiserver {

class Outlet {
 public:
  // How long a full outbox may stay full.
  static constexpr Duration kSlowMax = Duration::Seconds(15);
  // 1,024 streams * 128 KiB = 128 MiB at the very worst; a message is a few hundred bytes.
  static constexpr size_t kOutboxBytesMax = 128 * 1024;

  // The stream outlives the outlet. `check` says whether the reader may go on.
  Outlet(net::MessageStream& stream, std::function<Status()> check)
      : stream_(stream), check_(std::move(check)) {}
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // TooManyRequests for a reader that is too slow, after which the stream is over; Unauthorized or
  // Forbidden if it may read no more.
  rt::Task<Status> Send(std::string message);

 private:
  net::MessageStream& stream_;
  const std::function<Status()> check_;
};

}  // namespace berth::apiserver
