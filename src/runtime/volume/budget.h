// SPDX-License-Identifier: Apache-2.0
// The one disk budget of a host (PROTOCOL 6.6): volumes at their full size, snapshots and images at
// what they take, images on their way at what they will take, counted once, whatever their class.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace berth::runtime {

// 512 TiB * 10,000 volumes < 2^63: sums need no care.
constexpr int64_t kVolumeBytesMax = int64_t{1} << 49;
// With overcommit, the file system is full when less than this is left.
constexpr int64_t kHeadroomBytes = int64_t{64} << 20;

struct Budget {
  int64_t total = 0;  // what may be promised in all, overcommit included
  int64_t volumes = 0;
  int64_t snapshots = 0;
  int64_t images = 0;
  int64_t arriving = 0;   // of images on their way
  int64_t unknown = 0;    // files that are there and cannot be read as ours
  int64_t elsewhere = 0;  // of other runtimes of this host: machines with their disks, and images
  int64_t used() const { return volumes + snapshots + images + arriving + unknown + elsewhere; }
};

struct FileSystemRoom {
  int64_t available = 0;
  int64_t unwritten = 0;  // promised to disks, not yet written by them
};

enum class Promise : uint8_t {
  kWhole,       // every promised byte has to be there
  kOvercommit,  // whoever writes first gets it
};

// TooManyRequests, with the numbers, if `more` bytes for `what` do not fit.
Status CheckRoom(const Budget& budget,
                 const FileSystemRoom& room,
                 Promise promise,
                 int64_t more,
                 std::string_view what);

// The total of a host whose disk has `capacity` bytes, `reserve` of which are kept for others.
int64_t TotalBytes(int64_t capacity, int64_t reserve, double overcommit);

}  // namespace berth::runtime
