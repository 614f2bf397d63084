// SPDX-License-Identifier: Apache-2.0
// Files of /proc about other processes. Such a process may be gone between the opening of its file
// and the reading, which then fails; a std::ifstream's buffer throws for that. Blocks.
#pragma once

#include <string>

namespace berth {

// What is left to read of the open file; "" if it cannot be read.
std::string ReadToEnd(int fd);
// The whole file; "" if there is none, or none any more.
std::string ReadProcFile(const std::string& path);

}  // namespace berth
