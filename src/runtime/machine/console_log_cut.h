// SPDX-License-Identifier: Apache-2.0
// Keeps the log of a console short. QEMU appends to it whatever its guest says, with nobody between
// the two: a guest could fill the host's disk.
//
// The front of a log is freed as a hole. The file keeps its length, so that QEMU goes on behind
// what is there, nothing new is lost, and whoever reads it knows by the offset what is gone.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace berth::runtime {

// Of one machine, on disk. Half of it is what stays when a log is cut; the other half is for what a
// guest says until the next look: 2 MiB in a second are more than a serial line of QEMU takes, with
// a system call for each byte.
constexpr int64_t kConsoleLogMax = int64_t{4} << 20;
// What is cut off begins and ends there: a multiple of the blocks of all file systems.
constexpr int64_t kLogCutUnit = int64_t{64} << 10;
// Half of it stays, in whole units, and as much may be there before it is worth a cut.
constexpr int64_t kConsoleLogMaxLeast = 4 * kLogCutUnit;
constexpr int64_t kConsoleLogMaxMost = int64_t{1} << 30;
// Of what libvirt and QEMU say about one guest. What that does can make QEMU complain again and
// again.
constexpr int64_t kLibvirtLogMax = int64_t{1} << 20;
// Less than any file system allows, and days of a guest that never pauses. Then it begins anew.
constexpr int64_t kLogLengthMax = int64_t{1} << 40;

// Frees what is older than the newest `keep` bytes, in whole units. Ok if there is no log. A log on
// a file system without holes, or longer than `length_max`, is emptied. Blocks.
Status CutLog(const std::string& path, int64_t keep, int64_t length_max = kLogLengthMax);

}  // namespace berth::runtime
