// SPDX-License-Identifier: Apache-2.0
// Keys of a host and of guests' disks are in the memory of processes that may have a user in common
// with QEMU.
#pragma once

namespace berth::app {

// From now on other processes of our user neither trace this one nor read its memory, environment
// and open files in /proc/PID, and it leaves no core. Root still can. What it executes can be read
// again.
void KeepMemoryPrivate();

}  // namespace berth::app
