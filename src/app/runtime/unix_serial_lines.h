// SPDX-License-Identifier: Apache-2.0
// The serial lines of guests as QEMU offers them: unix sockets.
#pragma once

#include <memory>
#include <string>

#include "rt/asio/asio_loop.h"
#include "runtime/machine/serial_line.h"

namespace berth::app {

class UnixSerialLines final : public runtime::SerialLines {
 public:
  // The loop outlives the lines.
  explicit UnixSerialLines(rt::AsioLoop& loop) : loop_(loop) {}
  rt::Task<Result<std::unique_ptr<runtime::SerialLine>>> Open(std::string socket) override;

 private:
  rt::AsioLoop& loop_;
};

}  // namespace berth::app
