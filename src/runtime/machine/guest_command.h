// SPDX-License-Identifier: Apache-2.0
// A command that runs in a guest, by its agent, and the conversation of whoever wants it.
//
// An agent knows no streams: the input is collected and sent before the command starts, and what it
// says is known when it has ended. Whoever leaves before takes the command along, if the guest has
// a program `kill`; else it goes on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "iri/attach.h"
#include "rt/blocking_pool.h"
#include "rt/channel.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/task.h"
#include "runtime/machine/agent_words.h"
#include "runtime/machine/guest_agent.h"

namespace berth::runtime {

// On a host at a time. One that ends has its answer, what it means, and both outputs in memory:
// 32 * 15 MiB = 480 MiB if all of them say as much as they may and end at once.
constexpr size_t kCommandsMax = 32;

class GuestCommand {
 public:
  // From the attach to the end.
  static constexpr Duration kRunMax = Duration::Hours(1);
  // How long whoever wants the output may not read it.
  static constexpr Duration kPatience = Duration::Seconds(30);
  // How long a command may take to end, from each of the two signals.
  static constexpr Duration kGrace = Duration::Seconds(5);
  // From the end of the input to the start: whoever breaks off looks at first like somebody who is
  // done (net/grpc_server_stream.h), and half of an input must not run.
  static constexpr Duration kSecondThoughts = Duration::Millis(500);
  // From look to look, longer each time.
  static constexpr Duration kPauseMin = Duration::Millis(50);
  static constexpr Duration kPauseMax = Duration::Seconds(1);

  struct Deps {
    std::shared_ptr<GuestAgent> agent;
    rt::Loop& loop;          // both outlive this
    rt::BlockingPool& pool;  // reads long answers
    std::string machine;     // its id, for the log
  };
  GuestCommand(Deps deps, WantedCommand wanted);

  // Until the command has ended and all was said, or nobody wants it any more. The permit is given
  // back then. Ends with its caller's scope: the command goes on.
  static rt::Task<Status> Run(std::shared_ptr<GuestCommand> command, rt::Gate::Permit permit);
  // The other end.
  static std::unique_ptr<iri::AttachStream> Stream(std::shared_ptr<GuestCommand> command);

 private:
  class Listener;
  using Frames = rt::Channel<iri::AttachFrame>;

  // Ok when all of the input is there, or nobody is left to send it.
  rt::Task<Status> AwaitInput();
  // How the conversation ends: "0" or another exit status, or what went wrong.
  rt::Task<Result<std::string>> RunToItsEnd();
  rt::Task<Result<int64_t>> Start();
  // The pid of what a guest-exec has started.
  rt::Task<Result<int64_t>> Exec(meta::Value arguments);
  rt::Task<Result<CommandStatus>> Look(int64_t pid);
  // Looks until the command has ended, nobody wants it, or `limit` is over: not exited then.
  rt::Task<Result<CommandStatus>> LookUntil(int64_t pid, Time limit, rt::Event* other);
  // Ok if it is gone.
  rt::Task<Status> Kill(int64_t pid);
  rt::Task<Status> SendSignal(int64_t pid, std::string signal);
  rt::Task<Status> Say(iri::AttachFrame::Channel channel, std::string bytes);
  rt::Task<Status> SayAll(CommandStatus status);
  void Hear(std::string bytes);
  void Leave();

  // As many as wait for a reader: 8 * 64 KiB.
  static constexpr size_t kFramesMax = 8;

  const Deps deps_;
  const WantedCommand wanted_;
  const Time end_;
  std::string input_;
  bool has_too_much_input_ = false;
  rt::Event has_input_;  // all of it, or nobody is there to send more
  rt::Event is_left_;
  Frames frames_{kFramesMax};
  std::optional<std::string> last_;  // said when everything before it was read
};

}  // namespace berth::runtime
