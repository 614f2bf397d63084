// SPDX-License-Identifier: Apache-2.0
// Commands in guests: what they say comes back with their exit status, and no agent, whatever it
// says or leaves out, holds up more than whoever talks with it.
#include "runtime/machine/guest_command.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"
#include "runtime/machine/fake_guest_agent.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

using Channel = iri::AttachFrame::Channel;
using Stream = std::unique_ptr<iri::AttachStream>;
using Program = FakeGuestAgent::Program;

class GuestCommandTest : public testing::Test {
 protected:
  // What whoever wanted a command has heard.
  struct Heard {
    std::string out;
    std::string errors;
    std::string end;
  };

  void TearDown() override {
    EXPECT_TRUE(rt::RunTask(loop_, scope_.Close()).ok());
    EXPECT_EQ(gate_.inside(), 0U) << "all permits are back";
  }
  Stream Start(std::vector<std::string> argv, bool has_input = false) {
    auto permit = gate_.TryEnter();
    CHECK(permit.has_value());
    const auto command = std::make_shared<GuestCommand>(
        GuestCommand::Deps{.agent = agent_, .loop = loop_, .pool = pool_, .machine = "m-1"},
        WantedCommand{.argv = std::move(argv), .has_input = has_input});
    Stream stream = GuestCommand::Stream(command);
    scope_.Spawn("test.command", GuestCommand::Run(command, *std::move(permit)));
    return stream;
  }
  Heard Listen(const Stream& stream) {
    Heard heard;
    for (;;) {
      auto frame = rt::RunTask(loop_, stream->Read(), Duration::Hours(2));
      CHECK(frame.ok()) << frame.status();
      if (!frame->has_value()) break;
      CHECK((*frame)->data.size() <= iri::kAttachFrameBytesMax);
      if ((*frame)->channel == Channel::kOut) heard.out += (*frame)->data;
      if ((*frame)->channel == Channel::kErrors) heard.errors += (*frame)->data;
      if ((*frame)->channel == Channel::kEnd) heard.end = (*frame)->data;
    }
    CHECK(rt::RunTask(loop_, stream->Close()).ok());
    return heard;
  }
  Heard Run(std::vector<std::string> argv) { return Listen(Start(std::move(argv))); }
  void Write(const Stream& stream, const std::string& data) {
    const iri::AttachFrame frame{.channel = Channel::kIn, .data = data};
    CHECK(rt::RunTask(loop_, stream->Write(frame)).ok());
  }
  // The next programs end with this status, after so many looks.
  void EndsWith(const std::string& members, int looks = 0) {
    guest_.on_start = [members, looks](Program& program) {
      program.members = members;
      program.looks_left = looks;
    };
  }
  // Lies about one command.
  void Says(const std::string& about, const std::string& answer) {
    guest_.lie = [about, answer](std::string_view command) {
      return command == about ? std::optional<std::string>(answer) : std::nullopt;
    };
  }

  rt::SimLoop loop_{7};
  rt::SimBlockingPool pool_;
  FakeGuestAgent guest_;
  std::shared_ptr<GuestAgent> agent_ =
      std::make_shared<GuestAgent>(loop_, guest_, "/run/m-1/agent.sock");
  rt::Gate gate_{2};
  rt::TaskScope scope_{loop_};
};

TEST_F(GuestCommandTest, WhatItSaysComesBackWithItsExitStatus) {
  EndsWith(R"("exitcode":3,"out-data":")" + Base64Encode("hello\n") + R"(","err-data":")" +
               Base64Encode("oh\n") + "\"",
           5);
  const Heard heard = Run({"ls", "a b", "$(id)", ""});
  EXPECT_EQ(heard.out, "hello\n");
  EXPECT_EQ(heard.errors, "oh\n");
  EXPECT_EQ(heard.end, "3");
  const std::vector<std::string> argv = {"ls", "a b", "$(id)", ""};
  EXPECT_EQ(guest_.programs.at(100).argv, argv) << "no shell reads it";
  EndsWith("\"signal\":9");
  EXPECT_EQ(Run({"sleep"}).end, "137");
  EndsWith("\"exitcode\":3221225477");
  EXPECT_EQ(Run({"crash.exe"}).end, "255");
  EXPECT_NE(Run({"nope"}).end.find("the guest agent refused it: Failed to execute nope"),
            std::string::npos);
  EXPECT_EQ(guest_.sockets.size(), 1U) << "one line for all";
}

TEST_F(GuestCommandTest, InputIsSentWholeOrNotAtAll) {
  const Stream stream = Start({"cat"}, true);
  Write(stream, "one ");
  loop_.RunFor(Duration::Minutes(1));
  EXPECT_TRUE(guest_.programs.empty()) << "there may be more";
  Write(stream, "two");
  Write(stream, "");
  EXPECT_EQ(Listen(stream).end, "0");
  EXPECT_EQ(guest_.programs.at(100).input, "one two");

  const Stream flood = Start({"cat"}, true);
  const std::string piece(iri::kAttachFrameBytesMax, 'x');
  for (size_t sent = 0; sent <= kCommandInputBytesMax; sent += piece.size()) Write(flood, piece);
  EXPECT_EQ(Listen(flood).end,
            "the input has more than the 1 MiB that a guest agent is given: nothing was run");
  const Stream endless = Start({"cat"}, true);
  EXPECT_EQ(Listen(endless).end, "the input has no end: nothing was run");
  EXPECT_EQ(guest_.programs.size(), 1U);
}

TEST_F(GuestCommandTest, OfALongOutputTheBeginningIsKeptAndTheCutIsTold) {
  // As much as an agent keeps, with what counts behind it.
  EndsWith("\"out-data\":\"" + Base64Encode(std::string(size_t{16} << 20, 'o')) +
           R"(","out-truncated":true,"err-data":")" + Base64Encode("e") + "\",\"exitcode\":1");
  const Heard heard = Run({"yes"});
  EXPECT_EQ(heard.out, std::string(kCommandOutputBytesMax, 'o'));
  EXPECT_EQ(heard.errors, "e\nberth: the output is longer than 2 MiB: the rest of it is lost\n");
  EXPECT_EQ(heard.end, "1");
  // One that just fits.
  EndsWith("\"exitcode\":0,\"out-data\":\"" +
           Base64Encode(std::string(kCommandOutputBytesMax, 'o')) + "\"");
  const Heard whole = Run({"yes"});
  EXPECT_EQ(whole.out.size(), kCommandOutputBytesMax);
  EXPECT_EQ(whole.errors, "");
}

TEST_F(GuestCommandTest, WhatIsNoAnswerIsNotTakenForOne) {
  const std::string exited = R"({"return":{"exited":true,)";
  const struct {
    std::string about;
    std::string answer;
    std::string says;
  } kCases[] = {
      {"guest-exec", "hello", "no answer"},
      {"guest-exec", R"({"return":)" + std::string(1000, '['), "no answer"},
      {"guest-exec", "{}", "it has no return"},
      {"guest-exec", "[]", "it has no return"},
      {"guest-exec", R"({"return":{}})", "pid 0"},
      {"guest-exec", R"({"return":{"pid":-1}})", "pid -1"},
      {"guest-exec", R"({"return":{"pid":"1; rm"}})", "pid is no number"},
      {"guest-exec", R"({"error":{"desc":"\u001b[2Jblocked"}})", "refused it: \\x1b[2Jblocked"},
      {"guest-exec", R"({"error":7})", "the guest agent refused it"},
      {"guest-exec",
       R"({"return":{"pid":1,"more":")" + std::string(kAgentShortBytesMax, 'x') + "\"}}",
       "bytes to guest-exec, at most 8192"},
      {"guest-exec-status", R"({"return":{}})", "it does not say if it exited"},
      {"guest-exec-status", R"({"return":7})", "it does not say if it exited"},
      {"guest-exec-status", exited + R"("signal":900}})", "signal 900"},
      {"guest-exec-status", exited + R"("exitcode":"0"}})", "exitcode is no number"},
      {"guest-exec-status", exited + R"("out-data":"***"}})", "out-data is no Base64"},
      {"guest-exec-status", std::string(kAgentKeptBytesMax + 1, ' '), "many long texts"},
  };
  for (const auto& c : kCases) {
    Says(c.about, c.answer);
    const std::string end = Run({"id"}).end;
    EXPECT_NE(end.find(c.says), std::string::npos) << c.about << " " << c.says << ": " << end;
  }
  guest_.lie = nullptr;
  EXPECT_EQ(Run({"id"}).end, "0") << "and the next one is heard";
}

TEST_F(GuestCommandTest, AnEndlessTextHasAnEnd) {
  AgentAnswer answer;
  const std::string piece(size_t{1} << 20, 'x');
  EXPECT_EQ(answer.Take("{\"return\":\""), 11U);
  size_t taken = 0;
  while (!answer.is_too_large()) taken += answer.Take(piece);
  EXPECT_LE(taken, kAgentAnswerBytesMax);
  EXPECT_LE(answer.text().size(), kAgentTextBytesMax + 11);
  // Whoever only ever begins anew is not listened to for ever, either.
  AgentAnswer again;
  const std::string marks(size_t{1} << 20, '\xff');
  size_t heard = 0;
  while (!again.is_too_large()) heard += again.Take(marks);
  EXPECT_LE(heard, kAgentAnswerBytesMax + 1);
}

TEST_F(GuestCommandTest, ALateAnswerIsNotWaitedForAndNotTakenForTheNextOne) {
  Says("guest-exec-status", "");
  const Time before = loop_.Now();
  EXPECT_EQ(Run({"id"}).end,
            "the command was started and may still run: the guest agent: no answer within 1m");
  EXPECT_LT(loop_.Now() - before, GuestAgent::kAnswerMax + Duration::Seconds(2));
  guest_.lie = nullptr;
  guest_.noise =
      "{\"return\":{\"exited\":true,\"exitcode\":7}}\nhalf a li\xffne\n\xff{\"return\":1}\n";
  EXPECT_EQ(Run({"id"}).end, "0");
  EXPECT_EQ(guest_.sockets.size(), 2U) << "a new line";
}

TEST_F(GuestCommandTest, AGuestWithoutAnAgentSaysSoSoon) {
  Says("guest-sync-delimited", "");
  const Time before = loop_.Now();
  const Status silent = rt::RunTask(loop_, agent_->Greet());
  EXPECT_TRUE(silent.Is(Reason::kUnavailable)) << silent;
  EXPECT_EQ(silent.message(),
            "no guest agent answers (no answer within 5s): install qemu-guest-agent in the guest "
            "and start it");
  EXPECT_LT(loop_.Now() - before, GuestAgent::kGreetingMax + Duration::Seconds(1));
  guest_.is_there = false;
  EXPECT_NE(rt::RunTask(loop_, agent_->Greet()).message().find("switch it off and on"),
            std::string_view::npos);
  guest_.is_there = true;
  guest_.lie = nullptr;
  EXPECT_TRUE(rt::RunTask(loop_, agent_->Greet()).ok());
}

TEST_F(GuestCommandTest, AGuestThatGoesEndsTheConversation) {
  EndsWith("\"exitcode\":0", -1);
  const Stream stream = Start({"sleep"});
  loop_.RunFor(Duration::Seconds(1));
  guest_.hangs_up = true;
  EXPECT_EQ(Listen(stream).end,
            "the command was started and may still run: the guest agent: the guest has hung up");
}

TEST_F(GuestCommandTest, WhoLeavesTakesTheCommandAlong) {
  EndsWith("\"exitcode\":0", -1);
  const Stream stream = Start({"sleep"});
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(guest_.signals.empty());
  ASSERT_TRUE(rt::RunTask(loop_, stream->Close()).ok());
  loop_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(guest_.signals, std::vector<std::string>{"-TERM 100"});
  EXPECT_EQ(gate_.inside(), 0U);
  // Before it was started. Whoever breaks off looks like somebody who is done.
  const Stream early = Start({"cat"}, true);
  Write(early, "half of it");
  Write(early, "");
  ASSERT_TRUE(rt::RunTask(loop_, early->Close()).ok());
  loop_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(guest_.programs.size(), 2U) << "sleep and kill";
  EXPECT_EQ(gate_.inside(), 0U);
}

TEST_F(GuestCommandTest, ACommandHasATimeLimit) {
  guest_.on_start = [](Program& program) {
    program.looks_left = -1;
    program.ignores_term = true;
  };
  const Stream stream = Start({"sleep"});
  const Time before = loop_.Now();
  EXPECT_EQ(Listen(stream).end, "the command took longer than 1h and was ended");
  const std::vector<std::string> signals = {"-TERM 100", "-KILL 100"};
  EXPECT_EQ(guest_.signals, signals);
  EXPECT_LT(loop_.Now() - before, GuestCommand::kRunMax + Duration::Minutes(1));
}

TEST_F(GuestCommandTest, WhoDoesNotReadIsNotWaitedFor) {
  EndsWith("\"exitcode\":0,\"out-data\":\"" +
           Base64Encode(std::string(kCommandOutputBytesMax, 'o')) + "\"");
  const Stream lazy = Start({"yes"});
  loop_.RunFor(GuestCommand::kPatience + Duration::Minutes(1));
  EXPECT_EQ(gate_.inside(), 0U);
  EXPECT_LT(Listen(lazy).out.size(), kCommandOutputBytesMax);
}

TEST(WantedCommand, OptionsAreReadAsTheyAreMeant) {
  const auto wanted = WantedCommandOf({{"argv", R"(["sh","-c","a b"])"}, {"stdin", "true"}});
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const std::vector<std::string> argv = {"sh", "-c", "a b"};
  EXPECT_EQ(wanted->argv, argv);
  EXPECT_TRUE(wanted->has_input);
  const struct {
    iri::StringMap options;
    std::string says;
  } kCases[] = {{{}, "there is no command"},
                {{{"argv", "[]"}}, "expected a JSON array"},
                {{{"argv", R"({"a":1})"}}, "expected a JSON array"},
                {{{"argv", "[\"\"]"}}, "the program is empty"},
                {{{"argv", R"(["a",1])"}}, "word 2 is no text"},
                {{{"argv", R"(["a","b\u0000c"])"}}, "word 2 is no text"},
                {{{"argv", R"(["a"])"}, {"tty", "true"}}, "no terminal"}};
  for (const auto& c : kCases) {
    const auto refused = WantedCommandOf(c.options);
    EXPECT_EQ(refused.status().reason(), Reason::kBadRequest) << c.says;
    EXPECT_NE(refused.status().message().find(c.says), std::string_view::npos) << refused.status();
  }
}

TEST(MachineHost, RunsCommandsInGuestsThatAreOn) {
  FakeGuestAgent guest;
  MachineWorld world;
  world.other_lines = &guest;
  world.Restart();
  const std::string id = iri::Running(world, "u-1").metadata.id;
  iri::AttachRequest exec{.machine_uid = "u-1", .what = "exec", .options = {{"argv", "[\"id\"]"}}};
  const auto stream = world.Await(world.host().Attach(exec));
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_TRUE(guest.sockets.at(0).ends_with("/run/" + id + "/agent.sock")) << guest.sockets.at(0);
  EXPECT_NE(world.Guest(id).xml.find(guest.sockets.at(0)), std::string::npos);
  const auto end = world.Await((*stream)->Read());
  ASSERT_TRUE(end.ok() && end->has_value()) << end.status();
  EXPECT_EQ((*end)->channel, Channel::kEnd);
  EXPECT_EQ((*end)->data, "0");
  ASSERT_TRUE(world.Run((*stream)->Close()).ok());
  exec.options = {};
  EXPECT_TRUE(world.Await(world.host().Attach(exec)).status().Is(Reason::kBadRequest));
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, iri::MachineState::kStopped));
  EXPECT_TRUE(world.Await(world.host().Attach(exec)).status().Is(Reason::kConflict));
}

TEST(MachineHost, RunsOnlySoManyCommandsAtATime) {
  FakeGuestAgent guest;
  guest.on_start = [](Program& program) { program.looks_left = -1; };
  MachineWorld world;
  world.other_lines = &guest;
  world.Restart();
  iri::Running(world, "u-1");
  const iri::AttachRequest exec{
      .machine_uid = "u-1", .what = "exec", .options = {{"argv", "[\"sleep\"]"}}};
  std::vector<Stream> all;
  for (size_t i = 0; i < kCommandsMax; ++i) {
    auto stream = world.Await(world.host().Attach(exec));
    ASSERT_TRUE(stream.ok()) << stream.status();
    all.push_back(*std::move(stream));
  }
  EXPECT_TRUE(world.Await(world.host().Attach(exec)).status().Is(Reason::kTooManyRequests));
  world.Stop();
  const auto end = world.Await(all[0]->Read());
  ASSERT_TRUE(end.ok() && end->has_value()) << end.status();
  EXPECT_EQ((*end)->data, "the machine runtime stops");
  for (const Stream& stream : all) EXPECT_TRUE(world.Run(stream->Close()).ok());
}

}  // namespace
}  // namespace berth::runtime
