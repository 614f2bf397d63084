// SPDX-License-Identifier: Apache-2.0
// Defends that one message is one line, printable, in text and in JSON.
#include "base/log.h"

#include <gtest/gtest.h>

namespace berth::log {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { Configure({.level = Level::kWarning, .format = Format::kText}); }
};

std::string Logged(const Options& options) {
  Configure(options);
  testing::internal::CaptureStderr();
  LOG_DEBUG("not {}", "shown");
  LOG_INFO("pool \"{}\" has\n{}\x1b[31m machines", "a", 3);
  return testing::internal::GetCapturedStderr();
}

TEST_F(LogTest, TextIsOnePrintableLine) {
  const std::string text = Logged({.level = Level::kInfo, .format = Format::kText});
  EXPECT_TRUE(text.ends_with("Z info    pool \"a\" has\\n3\\x1b[31m machines\n")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST_F(LogTest, JsonIsOneObject) {
  const std::string text = Logged({.level = Level::kInfo, .format = Format::kJson});
  EXPECT_TRUE(text.starts_with("{\"time\":\"")) << text;
  EXPECT_NE(text.find(R"("level":"info","message":"pool \"a\" has\\n3\\x1b[31m machines"})"),
            std::string::npos)
      << text;
}

TEST_F(LogTest, ALevelSilencesWhatIsBelow) {
  EXPECT_EQ(Logged({.level = Level::kWarning, .format = Format::kText}), "");
  EXPECT_TRUE(Enabled(Level::kError));
  EXPECT_FALSE(Enabled(Level::kInfo));
}

TEST_F(LogTest, ArgumentsOfSilentLevelsAreNotEvaluated) {
  Configure({.level = Level::kError, .format = Format::kText});
  int calls = 0;
  LOG_INFO("{}", ++calls);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace berth::log
