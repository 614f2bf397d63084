// SPDX-License-Identifier: Apache-2.0
// Defends: a part is started again when it ends, is stopped when it is told to, and what runs once
// says how it ended.
#include "app/up/part.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "rt/asio/asio_loop.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

class PartTest : public testing::Test {
 protected:
  PartTest() {
    std::string pattern = testing::TempDir() + "part-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~PartTest() override { std::filesystem::remove_all(folder_); }

  PartCommand Shell(const std::string& script) const {
    PartCommand command;
    command.name = "shell";
    command.words = {"/bin/sh", "-c", script, folder_};  // $0 is the folder
    command.log = folder_ + "/log";
    return command;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t LogSize() const { return Read("log").size(); }

  std::string folder_;
  rt::AsioLoop loop_;
};

rt::Task<Status> KeepUntil(rt::AsioLoop* loop, Part* part, std::function<bool()> is_met) {
  rt::TaskScope scope(*loop);
  scope.Spawn("keep", part->Keep());
  while (!is_met()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(10)));
  CO_TRY_STATUS(co_await scope.Close());
  co_return co_await part->Stop();
}

TEST_F(PartTest, WhatEndsIsStartedAgain) {
  Part part(loop_, Shell("echo x"));
  const auto thrice = [this] { return LogSize() >= 6; };
  EXPECT_TRUE(rt::RunTask(loop_, KeepUntil(&loop_, &part, thrice)).ok());
}

TEST_F(PartTest, AVariableIsThereOnce) {
  PartCommand command = Shell("grep -cz ^HOME= /proc/$$/environ; echo $HOME");
  command.variables = {"HOME=/elsewhere"};
  Part part(loop_, command);
  EXPECT_TRUE(rt::RunTask(loop_, part.RunOnce()).ok());
  EXPECT_EQ(Read("log"), "1\n/elsewhere\n");
}

TEST_F(PartTest, WhatIsStoppedHasItsWord) {
  Part part(loop_, Shell("trap 'echo over; exit 0' TERM; echo on; while :; do sleep 0.01; done"));
  const auto runs = [this] { return Read("log") == "on\n"; };
  EXPECT_TRUE(rt::RunTask(loop_, KeepUntil(&loop_, &part, runs)).ok());
  EXPECT_EQ(Read("log"), "on\nover\n");
}

TEST_F(PartTest, OutputAndVariablesAreItsOwn) {
  PartCommand command = Shell("echo $FRUIT; echo aside >&2");
  command.output = folder_ + "/out";
  command.variables = {"FRUIT=pear"};
  Part part(loop_, command);
  EXPECT_TRUE(rt::RunTask(loop_, part.RunOnce()).ok());
  EXPECT_EQ(Read("out"), "pear\n");
  EXPECT_EQ(Read("log"), "aside\n");
}

TEST_F(PartTest, ABadEndIsAnError) {
  Part part(loop_, Shell("exit 3"));
  const Status ended = rt::RunTask(loop_, part.RunOnce());
  EXPECT_EQ(ended.message(), "shell ended with 3; see " + folder_ + "/log");
  Part killed(loop_, Shell("kill -9 $$"));
  EXPECT_EQ(rt::RunTask(loop_, killed.RunOnce()).message(),
            "shell was killed by signal 9; see " + folder_ + "/log");
}

TEST_F(PartTest, AnEmptyPathIsThisProgram) {
  PartCommand command = Shell("");
  command.words = {"", "--gtest_list_tests", "--gtest_filter=PartTest.AnEmptyPathIsThisProgram"};
  Part part(loop_, command);
  EXPECT_TRUE(rt::RunTask(loop_, part.RunOnce()).ok());
  EXPECT_NE(Read("log").find("AnEmptyPathIsThisProgram"), std::string::npos);
}

}  // namespace
}  // namespace berth::app
