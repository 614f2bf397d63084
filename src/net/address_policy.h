// SPDX-License-Identifier: Apache-2.0
// Connections to names that somebody else chose: asked about every address that a name turns out to
// have, right before it is used, so that no second look at the name says something else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

// Not ok: nothing is sent to this address ("192.0.2.1", "2001:db8::1"). Empty: all are allowed.
using AddressPolicy = std::function<Status(std::string_view address)>;

// As ConnectTcp, to the addresses that the policy allows; its error if there is none.
rt::Task<Result<int>> ConnectAllowed(rt::AsioLoop* loop,
                                     std::string host,
                                     uint16_t port,
                                     AddressPolicy policy);

}  // namespace berth::net
