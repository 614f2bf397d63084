// SPDX-License-Identifier: Apache-2.0
// Defends: whatever a guest says, its log takes no more than its bound, keeps what was said last,
// and is read and followed as if nothing had been cut.
#include "runtime/machine/console_log_cut.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "image/testing/temporary_folder.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"
#include "runtime/machine/console_log.h"

namespace berth::runtime {
namespace {

constexpr int64_t kKeep = 2 * kLogCutUnit;

class CutLogTest : public testing::Test {
 protected:
  // As QEMU has it open.
  void SetUp() override {
    fd_ = open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override { close(fd_); }
  std::string path() const { return folder_.Sub("console.log"); }
  void Say(const std::string& text) const {
    ASSERT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Numbered lines, so that each is told apart.
  void SayMany(int64_t bytes) {
    constexpr int kDigits = 15;
    std::string text;
    while (static_cast<int64_t>(text.size()) < bytes) {
      const std::string number = std::to_string(lines_++);
      text += std::string(kDigits - number.size(), '0') + number + "\n";
    }
    Say(text);
  }
  int64_t Taken() const {
    constexpr int64_t kBlock = 512;
    struct stat status = {};
    CHECK(fstat(fd_, &status) == 0);
    return status.st_blocks * kBlock;
  }
  std::unique_ptr<iri::AttachStream> Open(const iri::StringMap& options) {
    auto stream =
        rt::RunTask(loop_, OpenLog(&files_, *LogRequestOf(path(), options), [] { return true; }));
    CHECK(stream.ok()) << stream.status();
    return *std::move(stream);
  }
  // "1:" and what was said, "2:" and what is told about it, or "3:0".
  std::string Read(const std::unique_ptr<iri::AttachStream>& log) {
    const auto frame = rt::RunTask(loop_, log->Read());
    CHECK(frame.ok() && frame->has_value()) << frame.status();
    return std::to_string(static_cast<int>((*frame)->channel)) + ":" + (*frame)->data;
  }
  std::string ReadAll(const std::unique_ptr<iri::AttachStream>& log) {
    std::string all;
    for (std::string frame = Read(log); frame != "3:0"; frame = Read(log)) all += frame.substr(2);
    return all;
  }

  image::TemporaryFolder folder_;
  int fd_ = -1;
  int64_t lines_ = 0;
  rt::SimLoop loop_{7};
  rt::SimBlockingPool files_;
};

TEST_F(CutLogTest, AGuestThatNeverStopsTakesNoMoreThanItsBound) {
  for (int look = 0; look < 100; ++look) {
    SayMany(kLogCutUnit * 3 / 2);
    ASSERT_EQ(CutLog(path(), kKeep), OkStatus());
    ASSERT_LE(Taken(), kKeep + 2 * kLogCutUnit);
    ASSERT_GE(Taken(), kKeep < look * kLogCutUnit ? kKeep : 0);
  }
  Say("the last words");
  const std::string tail = ReadAll(Open({}));
  EXPECT_TRUE(tail.ends_with("\nthe last words")) << tail.substr(tail.size() - 40);
  EXPECT_GE(tail.size(), static_cast<size_t>(kKeep));
  EXPECT_FALSE(tail.contains('\0')) << "what is gone is no text";
  EXPECT_EQ(ReadAll(Open({{"tailLines", "1"}})), "the last words");
}

TEST_F(CutLogTest, AShortLogIsLeftAlone) {
  EXPECT_EQ(CutLog(folder_.Sub("none"), kKeep), OkStatus());
  SayMany(kKeep);
  ASSERT_EQ(CutLog(path(), kKeep), OkStatus());
  EXPECT_EQ(ReadAll(Open({})).size(), static_cast<size_t>(kKeep));
}

TEST_F(CutLogTest, WhoFollowsSeesAllOfItAlthoughItIsCut) {
  const auto log = Open({{"follow", "true"}});
  std::string heard;
  for (int look = 0; look < 20; ++look) {
    SayMany(kLogCutUnit / 2);
    const std::string frame = Read(log);
    ASSERT_TRUE(frame.starts_with("1:")) << frame;
    heard += frame.substr(2);
    ASSERT_EQ(CutLog(path(), kKeep), OkStatus());
  }
  EXPECT_EQ(static_cast<int64_t>(heard.size()), lines_ * 16) << "nothing twice, nothing missing";
  EXPECT_TRUE(heard.starts_with("000000000000000\n000000000000001\n"));
  EXPECT_FALSE(heard.contains('\0'));
}

TEST_F(CutLogTest, WhoWasOvertakenIsToldHowMuchIsGone) {
  const auto log = Open({{"follow", "true"}});
  SayMany(10 * kLogCutUnit);
  ASSERT_EQ(CutLog(path(), kKeep), OkStatus());
  EXPECT_EQ(Read(log), "2:\n[" + std::to_string(8 * kLogCutUnit) + " bytes of the log are gone]\n");
  const std::string rest = ReadAll(log);
  EXPECT_EQ(static_cast<int64_t>(rest.size()), kKeep);
  EXPECT_TRUE(rest.starts_with("0000")) << rest.substr(0, 40);
}

TEST_F(CutLogTest, ALogThatIsTooLongBeginsAnew) {
  SayMany(kLogCutUnit);
  const auto log = Open({{"tailLines", "0"}, {"follow", "true"}});
  ASSERT_EQ(CutLog(path(), kKeep, kLogCutUnit - 1), OkStatus());
  EXPECT_EQ(Taken(), 0);
  Say("again");
  EXPECT_EQ(Read(log), "1:again");
}

TEST_F(CutLogTest, ALogThatAnotherTookThePlaceOfIsReadFromItsBeginning) {
  Say("before");
  const auto log = Open({{"follow", "true"}});
  EXPECT_EQ(Read(log), "1:before");
  // As virtlogd does when it thinks that it is time.
  ASSERT_EQ(rename(path().c_str(), folder_.Sub("console.log.0").c_str()), 0);
  folder_.Write("console.log", "longer than before");
  EXPECT_EQ(Read(log), "1:longer than before");
}

TEST_F(CutLogTest, WhatIsNoLogIsNotTouched) {
  folder_.Write("other", std::string(static_cast<size_t>(10 * kLogCutUnit), 'x'));
  ASSERT_EQ(symlink(folder_.Sub("other").c_str(), folder_.Sub("link").c_str()), 0);
  EXPECT_NE(CutLog(folder_.Sub("link"), kKeep), OkStatus());
  EXPECT_EQ(image::ReadWhole(folder_.Sub("other")).size(), static_cast<size_t>(10 * kLogCutUnit));
}

}  // namespace
}  // namespace berth::runtime
