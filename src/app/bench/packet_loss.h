// SPDX-License-Identifier: Apache-2.0
// A network that loses packets, seen from one end: what comes to a socket is dropped by a filter of
// the kernel, before it is read or acknowledged. Nothing is closed, and the other end is told
// nothing; it sends again and again. What this end sends is not held back.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace berth::app {

// From now on. Needs no privileges.
Status DropPacketsTo(int socket);
// The same for every TCP socket that a process has: this one, or a child. NotFound: it has none.
Status DropAllPacketsOf(pid_t pid);

}  // namespace berth::app
