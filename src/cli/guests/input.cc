// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/input.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace berth::cli {
namespace {

constexpr size_t kReadBytes = 16 * 1024;

Result<Input::Event> ReadOnce(int fd, int wake, Duration patience) {
  std::array<pollfd, 2> both = {pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                pollfd{.fd = wake, .events = POLLIN, .revents = 0}};
  const int ready = ::poll(both.data(), both.size(), static_cast<int>(patience.millis()));
  if (ready < 0 && errno != EINTR) return Internal(std::string("poll: ") + std::strerror(errno));
  if (both[1].revents != 0) return Input::Event{.type = Input::Event::Type::kEnd, .data = {}};
  if (ready <= 0 || both[0].revents == 0) return Input::Event{};
  std::string data(kReadBytes, '\0');
  const ssize_t count = ::read(fd, data.data(), data.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Input::Event{};
  if (count < 0) return Internal(std::string("read the input: ") + std::strerror(errno));
  data.resize(static_cast<size_t>(count));
  const auto type = count == 0 ? Input::Event::Type::kEnd : Input::Event::Type::kData;
  return Input::Event{.type = type, .data = std::move(data)};
}

}  // namespace

TerminalSize SizeOf(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

Result<std::unique_ptr<Input>> Input::Of(int fd) {
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return Internal(std::string("eventfd: ") + std::strerror(errno));
  return std::unique_ptr<Input>(new Input(fd, wake));
}

Input::Input(int fd, int wake) : fd_(fd), wake_(wake), pool_({.threads = 1, .name = "input"}) {}
Input::~Input() { ::close(wake_); }

rt::Task<Result<Input::Event>> Input::Next(Duration patience) {
  const int fd = fd_;
  const int wake = wake_;
  auto read = [fd, wake, patience] { return ReadOnce(fd, wake, patience); };
  co_return co_await pool_.Run("cli.input", std::move(read));
}

void Input::Interrupt() {
  const uint64_t one = 1;
  // It is full only if it was interrupted before.
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
}

void Input::Resume() {
  uint64_t count = 0;
  // Nothing is there to be read if it was not interrupted.
  [[maybe_unused]] const ssize_t taken = ::read(wake_, &count, sizeof(count));
}

struct RawTerminal::Saved {
  termios modes;
};

std::unique_ptr<RawTerminal> RawTerminal::On(int fd) {
  auto saved = std::make_unique<Saved>();
  if (::tcgetattr(fd, &saved->modes) != 0) return nullptr;
  termios raw = saved->modes;
  ::cfmakeraw(&raw);
  if (::tcsetattr(fd, TCSANOW, &raw) != 0) return nullptr;
  return std::unique_ptr<RawTerminal>(new RawTerminal(fd, std::move(saved)));
}

RawTerminal::RawTerminal(int fd, std::unique_ptr<Saved> saved)
    : fd_(fd), saved_(std::move(saved)) {}
RawTerminal::~RawTerminal() { ::tcsetattr(fd_, TCSANOW, &saved_->modes); }

}  // namespace berth::cli
