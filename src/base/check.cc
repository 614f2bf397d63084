// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace berth::internal {

CheckFailure::CheckFailure(const char* condition, const char* file, int line)
    : stream_(*new std::ostringstream) {
  stream_ << "CHECK failed at " << file << ':' << line << ": " << condition << ' ';
}

CheckFailure::~CheckFailure() {
  stream_ << '\n';
  const std::string text = static_cast<std::ostringstream&>(stream_).str();
  // Straight to the descriptor: the log and its locks may be what is broken.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace berth::internal
