// SPDX-License-Identifier: Apache-2.0
// Defends: one `berth up` per data folder, and that the next one can tell who it is and how far.
#include "app/up/instance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::app {
namespace {

class InstanceTest : public testing::Test {
 protected:
  InstanceTest() {
    std::string pattern = testing::TempDir() + "instance-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~InstanceTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(InstanceTest, OneHoldsTheFolderAndIsKnown) {
  auto first = InstanceLock::Take(folder_);
  ASSERT_TRUE(first.ok() && *first != nullptr);
  const auto second = InstanceLock::Take(folder_);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, nullptr);
  EXPECT_EQ(*FindInstance(folder_), getpid());
  first->reset();
  EXPECT_EQ(*FindInstance(folder_), std::nullopt);
}

TEST_F(InstanceTest, AFolderThatIsNotThereHasNobody) {
  EXPECT_EQ(*FindInstance(folder_ + "/none"), std::nullopt);
}

TEST_F(InstanceTest, ProgressIsReadAsItWasWritten) {
  EXPECT_TRUE(ReadProgress(folder_).status().Is(Reason::kNotFound));
  const HostProgress progress = {.done = 2, .of = 6, .text = "machine runtime, with KVM"};
  ASSERT_TRUE(WriteProgress(folder_, progress).ok());
  EXPECT_EQ(*ReadProgress(folder_), progress);
  const HostProgress image = {.what = "image", .done = 20, .of = 600, .text = "20 of 600 B"};
  ASSERT_TRUE(WriteProgress(folder_, image).ok());
  EXPECT_EQ(*ReadProgress(folder_), image);
  const HostProgress none = {.state = HostProgress::State::kNone, .text = "no QEMU"};
  ASSERT_TRUE(WriteProgress(folder_, none).ok());
  EXPECT_EQ(*ReadProgress(folder_), none);
}

TEST_F(InstanceTest, ANewInstanceForgetsTheProgressOfTheLast) {
  ASSERT_TRUE(WriteProgress(folder_, {.text = "libvirtd"}).ok());
  ASSERT_TRUE(InstanceLock::Take(folder_).ok());
  EXPECT_TRUE(ReadProgress(folder_).status().Is(Reason::kNotFound));
}

TEST_F(InstanceTest, NonsenseIsAnError) {
  {
    std::ofstream file(folder_ + "/up.progress");
    file << "perhaps 1 2 x\n";
  }
  ASSERT_EQ(chmod((folder_ + "/up.progress").c_str(), 0600), 0);
  EXPECT_FALSE(ReadProgress(folder_).ok());
}

}  // namespace
}  // namespace berth::app
