// SPDX-License-Identifier: Apache-2.0
// How many files, sockets and handles of processes included, one of our processes may have open at
// once.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace berth::app {

// 10,000 connections, the files of the store, and some room. A server with a lower limit works, for
// fewer clients.
constexpr uint64_t kOpenFilesWanted = 16'384;
// More are never needed, and a fork would have to close them all.
constexpr uint64_t kOpenFilesMax = 1'048'576;

// Of a host's poollet and its fencer: a console and a handle for each of 300 machines, and some
// room.
constexpr uint64_t kOpenFilesWantedOfHost = 1024;

// The store, the ports and a few clients.
constexpr uint64_t kOpenFilesMin = 256;

// Raises the soft limit of this process as far as its hard limit allows, and gives what it is then.
// Never lowers it; warns in the log if it is less than `wanted`.
uint64_t RaiseOpenFiles(uint64_t wanted = kOpenFilesWanted);
// An error that says what to change if a server cannot work with so few. 0: not known.
Status CheckOpenFiles(uint64_t limit);

}  // namespace berth::app
