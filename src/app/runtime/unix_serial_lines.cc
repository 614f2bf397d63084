// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/unix_serial_lines.h"

#include <array>
#include <string_view>
#include <utility>

#include "net/socket.h"
#include "net/stream.h"

namespace berth::app {
namespace {

class UnixSerialLine final : public runtime::SerialLine {
 public:
  UnixSerialLine(rt::AsioLoop& loop, int fd) : stream_(loop, fd) {}

  rt::Task<Result<std::string>> Read() override {
    std::string bytes(kPieceBytes, '\0');
    CO_TRY(const size_t count, co_await stream_.Read(bytes));
    bytes.resize(count);
    co_return bytes;
  }
  rt::Task<Status> Write(std::string bytes) override {
    const std::array<std::string_view, 1> parts = {bytes};
    co_return co_await stream_.Write(parts);
  }

 private:
  static constexpr size_t kPieceBytes = 4096;
  net::PlainStream stream_;
};

}  // namespace

rt::Task<Result<std::unique_ptr<runtime::SerialLine>>> UnixSerialLines::Open(std::string socket) {
  CO_TRY(const int fd, co_await net::ConnectUnix(&loop_, std::move(socket)));
  std::unique_ptr<runtime::SerialLine> line = std::make_unique<UnixSerialLine>(loop_, fd);
  co_return line;
}

}  // namespace berth::app
