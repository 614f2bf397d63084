// SPDX-License-Identifier: Apache-2.0
// A guest's serial line and its log, for whoever looks.
#include "runtime/machine/console.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"
#include "runtime/machine/console_log.h"
#include "runtime/machine/fake_serial_lines.h"

namespace berth::runtime {
namespace {

using Channel = iri::AttachFrame::Channel;
using Stream = std::unique_ptr<iri::AttachStream>;

class ConsoleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto line = rt::RunTask(loop_, lines_.Open("/run/guest/console.sock"));
    ASSERT_TRUE(line.ok());
    console_ = Console::On(loop_, *std::move(line));
    wire_ = lines_.wires.back();
  }
  Stream Join() {
    auto viewer = Console::Join(console_);
    CHECK(viewer.ok()) << viewer.status();
    return *std::move(viewer);
  }
  void Close(const Stream& viewer) { CHECK(rt::RunTask(loop_, viewer->Close()).ok()); }
  // The next frame as "channel:data"; "end" after the last.
  std::string Read(const Stream& viewer) {
    const auto frame = rt::RunTask(loop_, viewer->Read());
    if (!frame.ok()) return std::string(frame.status().message());
    if (!frame->has_value()) return "end";
    return std::to_string(static_cast<int>((*frame)->channel)) + ":" + (*frame)->data;
  }
  Status Type(const Stream& viewer, const std::string& text) {
    const iri::AttachFrame frame{.channel = Channel::kIn, .data = text};
    return rt::RunTask(loop_, viewer->Write(frame));
  }
  void Say(const std::string& text) { ASSERT_TRUE(wire_->said.TrySend(text)); }

  rt::SimLoop loop_{7};
  FakeSerialLines lines_;
  std::shared_ptr<Console> console_;
  std::shared_ptr<FakeSerialLines::Wire> wire_;
};

TEST_F(ConsoleTest, AllSeeWhatTheGuestSaysAndAllMayType) {
  const Stream one = Join();
  const Stream two = Join();
  Say("login: ");
  EXPECT_EQ(Read(one), "1:login: ");
  EXPECT_EQ(Read(two), "1:login: ");
  EXPECT_TRUE(Type(one, "ro").ok());
  EXPECT_TRUE(Type(two, "ot\n").ok());
  EXPECT_TRUE(Type(two, "").ok()) << "no more input is no end";
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(wire_->typed, "root\n");
  Close(one);
  Say("more");
  EXPECT_EQ(Read(two), "1:more");
  EXPECT_EQ(Read(one), "end");
  Close(two);
  EXPECT_TRUE(console_->is_over()) << "nobody looks";
  console_.reset();
}

TEST_F(ConsoleTest, TheLineIsLetGoWithItsLastViewer) {
  Stream one = Join();
  Close(one);
  one.reset();
  console_.reset();
  EXPECT_FALSE(wire_->is_open);
}

TEST_F(ConsoleTest, TheEndOfTheGuestIsHeardBehindItsLastWords) {
  const Stream one = Join();
  Say("bye");
  wire_->said.Close();
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(console_->is_over());
  EXPECT_TRUE(Type(one, "x").Is(Reason::kUnavailable));
  EXPECT_EQ(Read(one), "1:bye");
  EXPECT_EQ(Read(one), "3:0");
  EXPECT_EQ(Read(one), "end");
  Close(one);
}

TEST_F(ConsoleTest, WhoDoesNotReadIsSentAwayAndTheOthersGoOn) {
  const Stream lazy = Join();
  const Stream keen = Join();
  size_t heard = 0;
  for (int i = 0; i < 40; ++i) {
    Say("line\n");
    loop_.RunFor(Console::kPatience + Duration::Seconds(1));
    while (Read(keen) != "1:line\n") continue;
    ++heard;
  }
  EXPECT_EQ(heard, 40U);
  int frames = 0;
  std::string last;
  for (last = Read(lazy); last == "1:line\n"; last = Read(lazy)) ++frames;
  EXPECT_GT(frames, 0);
  EXPECT_LT(frames, 40);
  EXPECT_EQ(last, "3:the console is not waited for any longer");
  Close(lazy);
  Close(keen);
}

TEST_F(ConsoleTest, AGuestThatTakesNothingHoldsUpWhoTypesAndNobodyElse) {
  const Stream one = Join();
  wire_->reads.Reset();
  // What the guest does not take is kept, but only so much of it.
  rt::TaskScope typing(loop_);
  int typed = 0;
  struct Typist {
    static rt::Task<Status> Run(iri::AttachStream* viewer, int* count) {
      for (; *count < 1000; ++*count) {
        iri::AttachFrame frame;
        frame.channel = Channel::kIn;
        frame.data = "x";
        CO_TRY_STATUS(co_await viewer->Write(std::move(frame)));
      }
      co_return OkStatus();
    }
  };
  typing.Spawn("typing", Typist::Run(one.get(), &typed));
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_LT(typed, 100);
  Say("still here");
  EXPECT_EQ(Read(one), "1:still here");
  wire_->reads.Set();
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(typed, 1000);
  EXPECT_EQ(wire_->typed.size(), 1000U);
  ASSERT_TRUE(rt::RunTask(loop_, typing.Close()).ok());
  Close(one);
}

TEST_F(ConsoleTest, ThereIsALimitToViewers) {
  std::vector<Stream> all;
  for (size_t i = 0; i < Console::kViewersMax; ++i) all.push_back(Join());
  EXPECT_TRUE(Console::Join(console_).status().Is(Reason::kTooManyRequests));
  for (const Stream& one : all) Close(one);
}

TEST(LastLines, AreAsManyAsAskedFor) {
  const struct {
    std::string_view text;
    size_t lines;
    std::string_view last;
  } cases[] = {{"", 3, ""},
               {"a\nb\nc\n", 0, ""},
               {"a\nb\nc\n", 1, "c\n"},
               {"a\nb\nc\n", 2, "b\nc\n"},
               {"a\nb\nc\n", 9, "a\nb\nc\n"},
               {"a\nb\nc", 1, "c"},
               {"a\nb\nc", 2, "b\nc"},
               {"\n\n", 1, "\n"},
               {"\n", 1, "\n"},
               {"x", SIZE_MAX, "x"}};
  for (const auto& one : cases) EXPECT_EQ(LastLines(one.text, one.lines), one.last) << one.text;
}

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-log-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& text) { std::ofstream(path(), std::ios::app) << text; }
  std::string path() const { return folder_ + "/console.log"; }
  Stream Open(const iri::StringMap& options) {
    auto request = LogRequestOf(path(), options);
    CHECK(request.ok()) << request.status();
    auto stream =
        rt::RunTask(loop_, OpenLog(&files_, *std::move(request), [this] { return over_; }));
    CHECK(stream.ok()) << stream.status();
    return *std::move(stream);
  }
  std::string Read(const Stream& log) {
    const auto frame = rt::RunTask(loop_, log->Read());
    CHECK(frame.ok()) << frame.status();
    if (!frame->has_value()) return "end";
    return std::to_string(static_cast<int>((*frame)->channel)) + ":" + (*frame)->data;
  }

  rt::SimLoop loop_{7};
  rt::SimBlockingPool files_;
  bool over_ = false;
  std::string folder_;
};

TEST_F(LogTest, TheLastLinesAndNoMore) {
  EXPECT_EQ(Read(Open({})), "3:0") << "there is no log yet";
  Write("a\nb\nc\n");
  const Stream log = Open({{"tailLines", "2"}});
  EXPECT_EQ(Read(log), "1:b\nc\n");
  EXPECT_EQ(Read(log), "3:0");
  EXPECT_EQ(Read(log), "end");
  EXPECT_FALSE(LogRequestOf(path(), {{"tailLines", "x"}}).ok());
}

TEST_F(LogTest, AnEndlessLogIsCut) {
  Write(std::string(3 * kLogTailMax, 'x'));
  const Stream log = Open({});
  size_t bytes = 0;
  for (std::string frame = Read(log); frame != "3:0"; frame = Read(log)) bytes += frame.size() - 2;
  EXPECT_EQ(bytes, kLogTailMax);
}

TEST_F(LogTest, WhoFollowsHearsTheRest) {
  Write("a\n");
  const Stream log = Open({{"tailLines", "0"}, {"follow", "true"}});
  Write("b\n");
  EXPECT_EQ(Read(log), "1:b\n");
  std::filesystem::resize_file(path(), 0);
  Write("c");
  EXPECT_EQ(Read(log), "1:c") << "begun anew";
  over_ = true;
  EXPECT_EQ(Read(log), "3:0");
  EXPECT_EQ(Read(log), "end");
}

}  // namespace
}  // namespace berth::runtime
