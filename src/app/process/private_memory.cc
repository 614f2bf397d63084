// SPDX-License-Identifier: Apache-2.0
#include "app/process/private_memory.h"

#include <sys/prctl.h>

namespace berth::app {

// It cannot fail. Files of /proc/self that only their owner writes are root's after it.
void KeepMemoryPrivate() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace berth::app
