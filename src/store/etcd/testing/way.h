// SPDX-License-Identifier: Apache-2.0
// A Way leads from one end of a connection to another process and back, and can be cut. As in a
// network that loses packets nothing is closed by that: bytes, and the news that an end has hung
// up, wait until the cut is healed and go on then. On-loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "net/stream.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/task.h"

namespace berth::store {

struct Way {
  std::function<bool()> is_cut;
  rt::Event* healed = nullptr;  // wakes whoever waits when a cut has ended; it is not left set
};

// Connects to the port of 127.0.0.1 and carries bytes both ways until either end hangs up. It holds
// at most 64 KiB in each direction; the rest waits with the kernel. Ok whatever the ends do;
// Cancelled.
rt::Task<Status> CarryBytes(rt::AsioLoop* loop,
                            Way way,
                            std::unique_ptr<net::Stream> near,
                            uint16_t target);

}  // namespace berth::store
