// SPDX-License-Identifier: Apache-2.0
#include "net/call/writable.h"

#include <fmt/core.h>

namespace berth::net {

Status CheckWritable(const Status* over, bool writes_done, size_t bytes, const RpcLimits& limits) {
  if (over != nullptr && !over->ok()) {
    return Unavailable(fmt::format("the stream is over: {}", over->message()));
  }
  if (over != nullptr || writes_done) return Unavailable("the stream is over");
  if (bytes > limits.message_bytes_max) {
    return {Reason::kRequestTooLarge,
            fmt::format("a message of {} bytes, the limit is {}", bytes, limits.message_bytes_max)};
  }
  return OkStatus();
}

}  // namespace berth::net
