// SPDX-License-Identifier: Apache-2.0
// Handlers on one loop, connections on another: TLS, HTTP/2 and the system calls of all sessions
// have a processor of their own then, and the loop of the handlers has its time for them.
//
//   loop of the network                     loop of the handlers
//   MessageStream ◄──► NetEnd ── posts ──► HomeEnd (a MessageStream) ◄──► handler
//
// Rules
//   1. Each end is touched on its own loop only; they speak by posts, which keep their order.
//   2. A handler is cancelled when its call is over, and the call lasts until its handler ended.
//   3. What is read ahead of a handler, and what waits for the network, is bounded: kReadAheadBytes
//      and kNetOutboxBytes beside the route's own limits.
#pragma once

#include <cstddef>

#include "net/rpc.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::net {

inline constexpr size_t kReadAheadBytes = size_t{64} * 1024;
inline constexpr size_t kNetOutboxBytes = size_t{64} * 1024;

// Routes for a server on the loop `net`, whose handlers run in `handlers`, on its loop. Both
// outlive the server.
RpcRoutes RelayRoutes(RpcRoutes routes, rt::Loop& net, rt::TaskScope& handlers);

}  // namespace berth::net
