// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/console.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "rt/deadline.h"

namespace berth::runtime {

using Channel = iri::AttachFrame::Channel;
using Frames = rt::Channel<iri::AttachFrame>;

class Console::Viewer final : public iri::AttachStream {
 public:
  explicit Viewer(std::shared_ptr<Console> console) : console_(std::move(console)) {}

  rt::Task<Result<std::optional<iri::AttachFrame>>> Read() override {
    const std::shared_ptr<Frames> frames = frames_;
    Result<iri::AttachFrame> frame = co_await frames->Receive();
    if (frame.ok()) co_return std::optional<iri::AttachFrame>(*std::move(frame));
    if (!frame.status().Is(Reason::kUnavailable)) co_return frame.status();
    if (!end_.has_value()) co_return std::optional<iri::AttachFrame>();
    iri::AttachFrame last;
    last.channel = Channel::kEnd;
    last.data = *std::exchange(end_, std::nullopt);
    co_return std::optional<iri::AttachFrame>(std::move(last));
  }
  rt::Task<Status> Write(iri::AttachFrame frame) override {
    if (frames_->closed()) co_return Unavailable("the console is closed");
    // A serial line has no size, and whoever types no more still looks.
    if (frame.channel != Channel::kIn || frame.data.empty()) co_return OkStatus();
    const std::shared_ptr<Console> console = console_;
    co_return co_await console->typed_.Send(std::move(frame.data));
  }
  rt::Task<Status> Close() override {
    frames_->Close();
    const std::shared_ptr<Console> console = console_;
    co_return co_await console->Leave(this);
  }

  const std::shared_ptr<Frames>& frames() const { return frames_; }
  void End(std::string why) {
    if (frames_->closed()) return;
    end_ = std::move(why);
    frames_->Close();
  }

 private:
  const std::shared_ptr<Console> console_;
  const std::shared_ptr<Frames> frames_ = std::make_shared<Frames>(kFramesMax);
  std::optional<std::string> end_;  // said when everything before it was read
};

Console::Console(rt::Loop& loop, std::unique_ptr<SerialLine> line)
    : line_(std::move(line)), pumps_(loop) {}

std::shared_ptr<Console> Console::On(rt::Loop& loop, std::unique_ptr<SerialLine> line) {
  std::shared_ptr<Console> console(new Console(loop, std::move(line)));
  console->pumps_.Spawn("console.listen", console->Listen());
  console->pumps_.Spawn("console.type", console->Type());
  return console;
}

Result<std::unique_ptr<iri::AttachStream>> Console::Join(const std::shared_ptr<Console>& console) {
  if (console->viewers_.size() >= kViewersMax) {
    return Status(Reason::kTooManyRequests,
                  fmt::format("{} look at the console already, which are the most", kViewersMax));
  }
  auto viewer = std::make_unique<Viewer>(console);
  console->viewers_.push_back(viewer.get());
  return std::unique_ptr<iri::AttachStream>(std::move(viewer));
}

void Console::End(const std::string& why) {
  over_ = true;
  typed_.Close();
  for (Viewer* const viewer : viewers_) viewer->End(why);
}

rt::Task<Status> Console::Listen() {
  for (;;) {
    Result<std::string> said = co_await line_->Read();
    if (said.status().Is(Reason::kCancelled)) co_return said.status();
    if (!said.ok() || said->empty()) {
      End("0");
      co_return OkStatus();
    }
    CO_TRY_STATUS(co_await Show(*std::move(said)));
  }
}

rt::Task<Status> Console::Show(std::string bytes) {
  // Viewers come and go while one is waited for.
  std::vector<std::shared_ptr<Frames>> all;
  for (const Viewer* const viewer : viewers_) all.push_back(viewer->frames());
  for (const std::shared_ptr<Frames>& frames : all) {
    iri::AttachFrame frame;
    frame.channel = Channel::kOut;
    frame.data = bytes;
    const Status sent = co_await rt::WithDeadline(frames->Send(std::move(frame)), kPatience);
    if (sent.Is(Reason::kCancelled)) co_return sent;
    if (!sent.Is(Reason::kTimeout)) continue;
    for (Viewer* const viewer : viewers_) {
      if (viewer->frames() == frames) viewer->End("the console is not waited for any longer");
    }
  }
  co_return OkStatus();
}

rt::Task<Status> Console::Type() {
  for (;;) {
    Result<std::string> typed = co_await typed_.Receive();
    if (typed.status().Is(Reason::kUnavailable)) co_return OkStatus();
    if (!typed.ok()) co_return typed.status();
    const Status written = co_await line_->Write(*std::move(typed));
    if (written.Is(Reason::kCancelled)) co_return written;
    // The line is gone: whoever listens to it says so.
    if (!written.ok()) typed_.Close();
  }
}

rt::Task<Status> Console::Leave(Viewer* viewer) {
  const bool was_there = viewers_.remove(viewer) > 0;
  if (!was_there || !viewers_.empty()) co_return OkStatus();
  over_ = true;
  typed_.Close();
  co_return co_await pumps_.Close();
}

}  // namespace berth::runtime
