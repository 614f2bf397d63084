// SPDX-License-Identifier: Apache-2.0
// A network that loses packets, seen from one end: what comes to a socket is dropped by a filter of
// the kernel, before it is read or acknowledged. Nothing is closed, and the other end is told
// nothing; it sends again and again. What this end sends is not held back.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::app {

// From now on. Needs no privileges.
Status DropPacketsTo(int socket);
// The same for every TCP socket of this process. NotFound: it has none.
Status DropAllPackets();
// And for every one of them that has this address ("127.0.0.1:35071") at either end.
Status DropPacketsOf(const std::string& address);

}  // namespace berth::app
