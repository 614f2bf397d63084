// SPDX-License-Identifier: Apache-2.0
// The serial line of a guest: QEMU's end is a unix socket that talks with one at a time.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "rt/task.h"

namespace berth::runtime {

// One reader and one writer at a time. Destroying it hangs up.
class SerialLine {
 public:
  virtual ~SerialLine() = default;
  // At least one byte; "" when the guest is gone.
  virtual rt::Task<Result<std::string>> Read() = 0;
  // Waits until the guest has room for it: its port holds 16 bytes.
  virtual rt::Task<Status> Write(std::string bytes) = 0;
};

class SerialLines {
 public:
  virtual ~SerialLines() = default;
  // Unavailable if nobody listens there.
  virtual rt::Task<Result<std::unique_ptr<SerialLine>>> Open(std::string socket) = 0;
};

}  // namespace berth::runtime
