// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/guest_commands.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/failure.h"
#include "cli/guests/forwarding.h"
#include "cli/guests/guest_link.h"
#include "cli/guests/input.h"
#include "cli/guests/lasting_talk.h"
#include "cli/guests/terminal_talk.h"
#include "cli/session/session.h"
#include "rt/event.h"

namespace berth::cli {
namespace {

// Opens the subresource and talks until it is over.
rt::Task<Result<int>> TalkTo(GuestLink* link,
                             std::string subresource,
                             GuestLink::Query query,
                             TerminalTalk::Ends ends) {
  CO_TRY(const std::unique_ptr<net::WebSocket> socket,
         co_await link->Open(std::move(subresource), std::move(query)));
  TerminalTalk talk(link->loop(), *socket, ends);
  co_return co_await talk.Run();
}

Status EndOf(const Result<int>& code) {
  if (!code.ok()) return code.status();
  return *code == 0 ? OkStatus() : EndWith(static_cast<uint8_t>(*code));
}

// Whether a console that ends is waited for.
enum class Lasts : uint8_t { kOnTerminals, kAlways, kNever };

Status TalkToConsole(Session& session,
                     const std::string& machine,
                     const std::string& subresource,
                     Lasts lasts) {
  TRY(const auto link, GuestLink::Make(session, machine));
  TRY(const auto input, Input::Of(STDIN_FILENO));
  const bool is_terminal = session.environment().terminal.in_is_terminal;
  if (is_terminal) session.err() << "Ctrl-] leaves the console.\n" << std::flush;
  const auto raw = is_terminal ? RawTerminal::On(STDIN_FILENO) : nullptr;
  using Escape = TerminalTalk::Ends::Escape;
  const TerminalTalk::Ends ends{.out = session.out(),
                                .err = session.err(),
                                .input = input.get(),
                                .terminal = is_terminal ? STDIN_FILENO : -1,
                                .escape = is_terminal ? Escape::kLeaves : Escape::kLeavesAlone};
  if (lasts == Lasts::kNever || (lasts == Lasts::kOnTerminals && !is_terminal)) {
    return EndOf(rt::RunTask(link->loop(), TalkTo(link.get(), subresource, {}, ends)));
  }
  const LastingTalk::Open open = [&link, &subresource] { return link->Open(subresource, {}); };
  const auto begin =
      lasts == Lasts::kAlways ? LastingTalk::Begin::kWaits : LastingTalk::Begin::kAtOnce;
  LastingTalk talk(link->loop(), open, ends, begin);
  return EndOf(rt::RunTask(link->loop(), talk.Run()));
}

Status RunExec(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  if (words.empty()) {
    return Advise(BadRequest("name a machine and a command"),
                  "berth exec web -- ls /etc; everything behind -- is the command's");
  }
  // As IronCore's exec, which knows no commands.
  if (words.size() == 1) return TalkToConsole(session, words[0], "exec", Lasts::kOnTerminals);
  const bool is_tty = arguments.Switch("tty");
  const bool has_input = arguments.Switch("stdin") || is_tty;
  if (is_tty && !session.environment().terminal.in_is_terminal) {
    return Advise(BadRequest("--tty: the input is no terminal"), "leave out --tty");
  }
  GuestLink::Query query;
  for (size_t i = 1; i < words.size(); ++i) query.emplace_back("command", words[i]);
  query.emplace_back("stdout", "true");
  query.emplace_back("stderr", is_tty ? "false" : "true");
  if (has_input) query.emplace_back("stdin", "true");
  if (is_tty) query.emplace_back("tty", "true");
  TRY(const auto link, GuestLink::Make(session, words.front()));
  std::unique_ptr<Input> input;
  if (has_input) {
    TRY(input, Input::Of(STDIN_FILENO));
  }
  const auto raw = is_tty ? RawTerminal::On(STDIN_FILENO) : nullptr;
  const TerminalTalk::Ends ends{.out = session.out(),
                                .err = session.err(),
                                .input = input.get(),
                                .terminal = is_tty ? STDIN_FILENO : -1};
  const Result<int> code =
      rt::RunTask(link->loop(), TalkTo(link.get(), "exec", std::move(query), ends));
  // What a host or guest says went wrong is not in the server's log.
  if (code.status().Is(Reason::kInternal)) {
    return Advise(code.status(), "look at its console: berth console " + words.front());
  }
  return EndOf(code);
}

Status RunConsole(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) return BadRequest("name one machine");
  const bool reconnects = arguments.Switch("reconnect");
  if (reconnects && arguments.Switch("once")) {
    return Advise(BadRequest("--reconnect and --once are opposites"), "leave out one of them");
  }
  Lasts lasts = reconnects ? Lasts::kAlways : Lasts::kOnTerminals;
  if (arguments.Switch("once")) lasts = Lasts::kNever;
  return TalkToConsole(session, arguments.words().front(), "console", lasts);
}

rt::Task<Status> Forward(Session* session,
                         GuestLink* link,
                         std::string address,
                         std::vector<ForwardedPort> ports) {
  Forwarding forwarding(*link, session->err());
  rt::Event stopped;
  Status status;
  for (const ForwardedPort port : ports) {
    const auto listening = forwarding.Listen(address, port);
    status = listening.status();
    if (!status.ok()) break;
    session->out() << fmt::format("Forwarding from {} -> {}\n", *listening, port.remote)
                   << std::flush;
  }
  if (status.ok()) {
    link->loop().OnSignal({SIGINT, SIGTERM}, [&stopped](int) { stopped.Set(); });
    status = co_await stopped.Wait();
    link->loop().OnSignal({SIGINT, SIGTERM}, [](int) {});
  }
  const Status closed = co_await forwarding.Stop();
  CHECK(closed.ok());
  co_return status;
}

Status RunPortForward(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() < 2) {
    return Advise(BadRequest("name a machine and at least one port"),
                  "berth port-forward web 8080:80");
  }
  std::vector<ForwardedPort> ports;
  for (size_t i = 1; i < words.size(); ++i) {
    TRY(const ForwardedPort port, ParseForwardedPort(words[i]));
    ports.push_back(port);
  }
  TRY(const auto link, GuestLink::Make(session, words.front()));
  return rt::RunTask(link->loop(),
                     Forward(&session, link.get(), arguments.Text("address"), std::move(ports)));
}

constexpr std::array kExecFlags = {
    Flag{.name = "stdin", .letter = 'i', .help = "The command reads what comes in here."},
    Flag{.name = "tty", .letter = 't', .help = "The command gets a terminal; with --stdin."},
};
constexpr std::array kConsoleFlags = {
    Flag{.name = "reconnect",
         .help = "Wait for the guest whenever it is not there, also at first. On a terminal it is "
                 "waited for once it was there."},
    Flag{.name = "once", .help = "End when the guest does; so it is where the input is a pipe."},
};
constexpr std::array kForwardFlags = {
    Flag{.name = "address",
         .kind = FlagKind::kText,
         .value_name = "ADDRESS",
         .help = "Numeric address of this computer to listen on.",
         .fallback = "127.0.0.1"},
};

}  // namespace

Command ExecCommand() {
  return {
      .name = "exec",
      .group = "Look",
      .usage = "MACHINE [-- COMMAND [ARGUMENT...]]",
      .summary = "Run a command in a machine",
      .details =
          "The command's output comes here, and its exit status is that of berth. Guests of berth "
          "runtime machine run it by their agent, the package qemu-guest-agent: no shell reads it, "
          "it gets its input before it starts (1 MiB at most) and no terminal, and its output is "
          "here when it has ended (2 MiB at most). Without a command it is the machine's console. "
          "Needs the right to create machines/exec.",
      .examples =
          "berth exec web -- uname -a\n"
          "berth exec web -- sh -c 'df -h | grep vda'\n"
          "tar c site | berth exec -i web -- tar x -C /srv\n"
          "berth exec web",
      .flags = kExecFlags,
      .words = Completion::kKindAndNames,
      .run = &RunExec};
}

Command ConsoleCommand() {
  return {.name = "console",
          .group = "Look",
          .usage = "MACHINE",
          .summary = "Talk to a machine's console",
          .details =
              "Everything that is typed goes to the machine; Ctrl-] leaves, from a pipe only if "
              "nothing else comes with it. When the guest ends or its host is away, the console "
              "waits and is there again with it. Needs the right to create machines/console.",
          .examples =
              "berth console web\nberth console machine/web -n shop\n"
              "berth console web --reconnect",
          .flags = kConsoleFlags,
          .words = Completion::kKindAndNames,
          .run = &RunConsole};
}

Command PortForwardCommand() {
  return {.name = "port-forward",
          .group = "Look",
          .usage = "MACHINE [LOCAL:]PORT...",
          .summary = "Reach ports of a machine from this computer",
          .details =
              "Listens until it is interrupted; each connection goes through the server and the "
              "machine's host. Needs the right to create machines/portforward.",
          .examples =
              "berth port-forward web 8080:80\n"
              "berth port-forward db 5432 --address 10.0.0.5\n"
              "berth port-forward web :80",
          .flags = kForwardFlags,
          .words = Completion::kKindAndNames,
          .run = &RunPortForward};
}

}  // namespace berth::cli
