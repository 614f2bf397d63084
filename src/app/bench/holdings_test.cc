// SPDX-License-Identifier: Apache-2.0
// What hosts say is read as they wrote it, and half a file is none.
#include "app/bench/holdings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::app {
namespace {

class HoldingsTest : public ::testing::Test {
 protected:
  HoldingsTest() {
    std::string name = std::filesystem::temp_directory_path() / "holdings-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~HoldingsTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "held"; }

  std::filesystem::path folder_;
};

TEST_F(HoldingsTest, AreReadAsTheyWereWritten) {
  const Holdings holdings = {{"u-1", {"a"}}, {"u-2", {"a", "b"}}};
  ASSERT_EQ(WriteHoldings(path(), holdings), OkStatus());
  EXPECT_EQ(*ReadHoldings(path()), holdings);
  ASSERT_EQ(WriteHoldings(path(), {}), OkStatus());
  EXPECT_EQ(*ReadHoldings(path()), Holdings());
}

TEST_F(HoldingsTest, AFileThatIsMissingOrBrokenIsAnError) {
  EXPECT_FALSE(ReadHoldings(path()).ok());
  std::ofstream(path()) << "u-1 a\nu-2\n";
  EXPECT_EQ(ReadHoldings(path()).status().message(), path() + ": \"u-2\" is no UID and host");
}

}  // namespace
}  // namespace berth::app
