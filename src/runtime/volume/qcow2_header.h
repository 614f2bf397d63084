// SPDX-License-Identifier: Apache-2.0
// Reads the header of a qcow2 file from outside, before any program that would follow what is
// written in it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace berth::runtime {

// The header and its extensions are in the first cluster; this much is enough for those of images.
constexpr size_t kQcow2HeaderBytes = 64 * 1024;

// The virtual size of the disk whose file begins with `head`. BadRequest for everything that is not
// a plain disk in one file: a backing file, an external data file, encryption, features that are
// not known.
Result<int64_t> Qcow2VirtualBytes(std::string_view head);

}  // namespace berth::runtime
