// SPDX-License-Identifier: Apache-2.0
// How many files, sockets included, a server may have open at once.
#pragma once

#include <cstdint>

namespace berth::app {

// 10,000 connections, the files of the store, and some room. A server with a lower limit works, for
// fewer clients.
constexpr uint64_t kOpenFilesWanted = 16'384;
// More are never needed, and a fork would have to close them all.
constexpr uint64_t kOpenFilesMax = 1'048'576;

// Raises the soft limit of this process as far as its hard limit allows, and gives what it is then.
// Never lowers it; warns in the log if it is less than kOpenFilesWanted.
uint64_t RaiseOpenFiles();

}  // namespace berth::app
