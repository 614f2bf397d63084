// SPDX-License-Identifier: Apache-2.0
// Defends: whoever brings up a host hears how far the demo image is, whatever stands in the file.
#include "app/up/local_host.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace berth::app {
namespace {

class LastProgressTest : public testing::Test {
 protected:
  LastProgressTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-local-host-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~LastProgressTest() override { std::filesystem::remove_all(folder_); }
  std::optional<WrittenBytes> Of(const std::string& text) const {
    std::ofstream(folder_ + "/progress", std::ios::trunc) << text;
    return LastProgress(folder_ + "/progress");
  }
  std::string folder_;
};

TEST_F(LastProgressTest, IsTheLastWholeLine) {
  const auto now =
      Of("image         10/600 10 B of 600 B written\n"
         "image         20/600 20 B of 600 B written\n"
         "image         30/6");
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(now->bytes, 20U);
  EXPECT_EQ(now->of, 600U);
  EXPECT_EQ(now->text, "20 B of 600 B written");
}

TEST_F(LastProgressTest, IsNoneOfWhatSaysNothingOfIt) {
  EXPECT_FALSE(LastProgress(folder_ + "/absent").has_value());
  EXPECT_FALSE(Of("").has_value());
  EXPECT_FALSE(Of("built   demo:latest\n").has_value());
  EXPECT_FALSE(Of("image x/y\nimage 1\nhost 1/2 three\n").has_value());
  EXPECT_EQ(Of("image 1/2 half\nbuilt   demo\n")->text, "half");
}

}  // namespace
}  // namespace berth::app
