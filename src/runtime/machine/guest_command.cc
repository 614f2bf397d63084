// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/guest_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/deadline.h"

namespace berth::runtime {

using Channel = iri::AttachFrame::Channel;

class GuestCommand::Listener final : public iri::AttachStream {
 public:
  explicit Listener(std::shared_ptr<GuestCommand> command) : command_(std::move(command)) {}
  ~Listener() override { command_->Leave(); }

  rt::Task<Result<std::optional<iri::AttachFrame>>> Read() override {
    const std::shared_ptr<GuestCommand> command = command_;
    Result<iri::AttachFrame> frame = co_await command->frames_.Receive();
    if (frame.ok()) co_return std::optional<iri::AttachFrame>(*std::move(frame));
    if (!frame.status().Is(Reason::kUnavailable)) co_return frame.status();
    if (!command->last_.has_value()) co_return std::optional<iri::AttachFrame>();
    iri::AttachFrame last;
    last.channel = Channel::kEnd;
    last.data = *std::exchange(command->last_, std::nullopt);
    co_return std::optional<iri::AttachFrame>(std::move(last));
  }
  rt::Task<Status> Write(iri::AttachFrame frame) override {
    if (command_->frames_.closed()) co_return Unavailable("the command has ended");
    // Without a terminal there is no size.
    if (frame.channel == Channel::kIn) command_->Hear(std::move(frame.data));
    co_return OkStatus();
  }
  rt::Task<Status> Close() override {
    command_->Leave();
    co_return OkStatus();
  }

 private:
  const std::shared_ptr<GuestCommand> command_;
};

GuestCommand::GuestCommand(Deps deps, WantedCommand wanted)
    : deps_(std::move(deps)), wanted_(std::move(wanted)), end_(deps_.loop.Now() + kRunMax) {
  if (!wanted_.has_input) has_input_.Set();
}

std::unique_ptr<iri::AttachStream> GuestCommand::Stream(std::shared_ptr<GuestCommand> command) {
  return std::make_unique<Listener>(std::move(command));
}

void GuestCommand::Hear(std::string bytes) {
  if (has_input_.is_set()) return;
  has_too_much_input_ = input_.size() + bytes.size() > kCommandInputBytesMax;
  if (bytes.empty() || has_too_much_input_) {
    has_input_.Set();
    return;
  }
  input_ += bytes;
}

void GuestCommand::Leave() {
  is_left_.Set();
  has_input_.Set();
  frames_.Close();
}

rt::Task<Status> GuestCommand::Run(std::shared_ptr<GuestCommand> command, rt::Gate::Permit permit) {
  const rt::Gate::Permit held = std::move(permit);
  Result<std::string> end = co_await command->RunToItsEnd();
  command->last_ = end.ok() ? *std::move(end) : std::string(end.status().message());
  if (end.status().Is(Reason::kCancelled)) command->last_ = "the machine runtime stops";
  command->frames_.Close();
  co_return end.status().Is(Reason::kCancelled) ? end.status() : OkStatus();
}

rt::Task<Status> GuestCommand::AwaitInput() {
  if (!wanted_.has_input) co_return OkStatus();
  const Status heard = co_await rt::WithDeadline(has_input_.Wait(), kRunMax);
  if (heard.Is(Reason::kTimeout)) co_return Timeout("the input has no end: nothing was run");
  CO_TRY_STATUS(heard);
  if (has_too_much_input_) {
    co_return BadRequest(fmt::format(
        "the input has more than the {} MiB that a guest agent is given: nothing was run",
        kCommandInputBytesMax >> 20));
  }
  const Status left = co_await rt::WithDeadline(is_left_.Wait(), kSecondThoughts);
  co_return left.Is(Reason::kCancelled) ? left : OkStatus();
}

rt::Task<Result<std::string>> GuestCommand::RunToItsEnd() {
  CO_TRY_STATUS(co_await AwaitInput());
  if (is_left_.is_set()) co_return std::string();
  CO_TRY(const int64_t pid, co_await Start());
  Result<CommandStatus> status = co_await LookUntil(pid, end_, &is_left_);
  if (!status.ok()) co_return status.status().Wrap("the command was started and may still run");
  if (status->has_exited) {
    const int exit_code = status->exit_code;
    CO_TRY_STATUS(co_await SayAll(*std::move(status)));
    co_return std::to_string(exit_code);
  }
  const Status killed = co_await Kill(pid);
  if (killed.Is(Reason::kCancelled)) co_return killed;
  if (!killed.ok()) {
    LOG_WARNING("machine {}: a command, pid {} in the guest, goes on although nobody waits: {}",
                deps_.machine,
                pid,
                killed.message());
  }
  co_return Timeout(
      fmt::format("the command took longer than {} and was {}",
                  FormatDuration(kRunMax),
                  killed.ok() ? "ended" : "left running: " + std::string(killed.message())));
}

rt::Task<Result<int64_t>> GuestCommand::Start() {
  meta::Value arguments = CommandArguments(wanted_, input_);
  input_ = std::string();
  co_return co_await Exec(std::move(arguments));
}

rt::Task<Result<int64_t>> GuestCommand::Exec(meta::Value arguments) {
  std::string request = AgentRequest("guest-exec", std::move(arguments));
  CO_TRY(const std::string answer, co_await deps_.agent->Call(std::move(request)));
  // It is read in a turn of the loop.
  if (answer.size() > kAgentShortBytesMax) {
    co_return BadRequest(
        fmt::format("the guest agent said what is no answer: {} bytes to guest-exec, at most {}",
                    answer.size(),
                    kAgentShortBytesMax));
  }
  CO_TRY(const meta::Value returned, ReadAgentAnswer(answer));
  co_return ReadCommandPid(returned);
}

rt::Task<Result<CommandStatus>> GuestCommand::Look(int64_t pid) {
  meta::Value arguments = meta::Value::Object();
  arguments.Set("pid", pid);
  std::string request = AgentRequest("guest-exec-status", std::move(arguments));
  CO_TRY(const std::string answer, co_await deps_.agent->Call(std::move(request)));
  const auto read = [&answer]() -> Result<CommandStatus> {
    TRY(const meta::Value returned, ReadAgentAnswer(answer));
    return ReadCommandStatus(returned);
  };
  // A few MiB of Base64 are too much for a turn of the loop.
  co_return co_await deps_.pool.Run("machines.agent_answer", read);
}

rt::Task<Result<CommandStatus>> GuestCommand::LookUntil(int64_t pid, Time limit, rt::Event* other) {
  Duration pause = kPauseMin;
  for (;;) {
    CO_TRY(CommandStatus status, co_await Look(pid));
    const Duration left = limit - deps_.loop.Now();
    if (status.has_exited || other->is_set() || left <= Duration()) co_return status;
    const Status waited = co_await rt::WithDeadline(other->Wait(), std::min(pause, left));
    if (waited.Is(Reason::kCancelled)) co_return waited;
    pause = std::min(pause * 2, kPauseMax);
  }
}

rt::Task<Status> GuestCommand::Kill(int64_t pid) {
  rt::Event never;
  for (const char* const signal : {"-TERM", "-KILL"}) {
    CO_TRY_STATUS(co_await SendSignal(pid, signal));
    CO_TRY(const CommandStatus status, co_await LookUntil(pid, deps_.loop.Now() + kGrace, &never));
    if (status.has_exited) co_return OkStatus();
  }
  co_return Timeout("it does not end");
}

// The agent has no word for it: a program of the guest does it.
rt::Task<Status> GuestCommand::SendSignal(int64_t pid, std::string signal) {
  WantedCommand kill;
  kill.argv = {"kill", std::move(signal), std::to_string(pid)};
  meta::Value arguments = CommandArguments(kill, std::string_view());
  CO_TRY(const int64_t own, co_await Exec(std::move(arguments)));
  // An agent keeps what ended until it was asked for it.
  rt::Event never;
  CO_TRY(const CommandStatus sent, co_await LookUntil(own, deps_.loop.Now() + kGrace, &never));
  co_return sent.has_exited ? OkStatus() : Timeout("its program kill does not end");
}

rt::Task<Status> GuestCommand::Say(Channel channel, std::string bytes) {
  for (size_t at = 0; at < bytes.size(); at += iri::kAttachFrameBytesMax) {
    iri::AttachFrame frame;
    frame.channel = channel;
    frame.data = bytes.substr(at, iri::kAttachFrameBytesMax);
    CO_TRY_STATUS(co_await rt::WithDeadline(frames_.Send(std::move(frame)), kPatience));
  }
  co_return OkStatus();
}

rt::Task<Status> GuestCommand::SayAll(CommandStatus status) {
  const auto cut = [](std::string_view what) {
    return fmt::format("\nberth: {} is longer than {} MiB: the rest of it is lost\n",
                       what,
                       kCommandOutputBytesMax >> 20);
  };
  CO_TRY_STATUS(co_await Say(Channel::kOut, std::move(status.out)));
  CO_TRY_STATUS(co_await Say(Channel::kErrors, std::move(status.errors)));
  if (status.is_out_cut) CO_TRY_STATUS(co_await Say(Channel::kErrors, cut("the output")));
  if (status.is_errors_cut) CO_TRY_STATUS(co_await Say(Channel::kErrors, cut("its error output")));
  co_return OkStatus();
}

}  // namespace berth::runtime
