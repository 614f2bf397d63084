// SPDX-License-Identifier: Apache-2.0
// Defends that a log is shown as it comes, and that a guest cannot write on our terminal.
#include <gtest/gtest.h>

#include <string>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kLog = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines/web/log";

TEST(Logs, AreShownAsTheyCome) {
  FakeProgram program;
  program.server.ServeDiscovery();
  program.server.watches[kLog] = {.chunks = {"one\n", "two\x1b[2J\n"}, .ends = true};
  const auto ended = RunLine(program, {"logs", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "one\ntwo\x1b[2J\n") << "into a file they go as they are";
}

TEST(Logs, OfAGuestCannotMoveTheCursor) {
  FakeProgram program;
  program.server.ServeDiscovery();
  program.environment.terminal.out_is_terminal = true;
  program.server.watches[kLog + "?follow=true&tailLines=5"] = {.chunks = {"a\tb\r\nred\x1b[31m\n"},
                                                               .ends = true};
  const auto ended = RunLine(program, {"logs", "machine/web", "-f", "--tail", "5"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out.find('\x1b'), std::string::npos);
  EXPECT_TRUE(ended.out.starts_with("a\tb\nred")) << ended.out;
  EXPECT_TRUE(ended.out.ends_with("\n"));
}

TEST(Logs, NeedAMachine) {
  FakeProgram program;
  program.server.ServeDiscovery();
  EXPECT_EQ(RunLine(program, {"logs"}).code, 2);
  EXPECT_EQ(RunLine(program, {"logs", "volume/data"}).code, 2);
}

}  // namespace
}  // namespace berth::cli
