// SPDX-License-Identifier: Apache-2.0
// Whether a stream takes one more message.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "net/rpc.h"

namespace berth::net {

// Ok if nothing but a full outbox can be in the way. `over` is how the stream ended, null while it
// has not.
Status CheckWritable(const Status* over, bool writes_done, size_t bytes, const RpcLimits& limits);

}  // namespace berth::net
