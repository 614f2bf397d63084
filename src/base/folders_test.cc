// SPDX-License-Identifier: Apache-2.0
// Defends: whoever comes through a folder that we made can, nobody's folder is changed for that,
// and a folder that is in the way is named.
#include "base/folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth {
namespace {

constexpr uid_t kStranger = 4'000'000'000;
constexpr gid_t kGroup = 4'000'000'001;

class FoldersTest : public testing::Test {
 protected:
  FoldersTest() : mask_(umask(0077)) {
    std::string pattern = testing::TempDir() + "folders-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~FoldersTest() override {
    umask(mask_);
    std::filesystem::remove_all(root_);
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat seen = {};
    return stat(path.c_str(), &seen) == 0 ? seen.st_mode & 07777U : 0;
  }
  const mode_t mask_;
  std::string root_;
};

TEST_F(FoldersTest, WhatIsMadeLetsOthersThroughWhateverTheUmask) {
  ASSERT_EQ(MakeOpenFolders(root_ + "/var/lib/berth"), OkStatus());
  for (const std::string folder : {"/var", "/var/lib", "/var/lib/berth"}) {
    EXPECT_EQ(ModeOf(root_ + folder), 0711U) << folder;
  }
  EXPECT_EQ(MakeOpenFolders(root_ + "/var/lib/berth/"), OkStatus()) << "once more";
}

TEST_F(FoldersTest, WhatIsThereStaysAsItIs) {
  ASSERT_EQ(mkdir((root_ + "/mine").c_str(), 0700), 0);
  ASSERT_EQ(MakeOpenFolders(root_ + "/mine/below"), OkStatus());
  EXPECT_EQ(ModeOf(root_), 0700U);
  EXPECT_EQ(ModeOf(root_ + "/mine"), 0700U);
  EXPECT_EQ(ModeOf(root_ + "/mine/below"), 0711U);
  ASSERT_EQ(MakeOpenFolders(root_ + "/mine"), OkStatus());
  EXPECT_EQ(ModeOf(root_ + "/mine"), 0700U);
}

TEST_F(FoldersTest, AFileInTheWayIsAnError) {
  std::ofstream(root_ + "/file") << "text";
  for (const std::string path : {"/file", "/file/below"}) {
    const Status made = MakeOpenFolders(root_ + path);
    EXPECT_FALSE(made.ok()) << path;
    EXPECT_NE(made.message().find(root_ + path), std::string::npos) << made;
  }
}

TEST_F(FoldersTest, AFolderThatIsClosedForSomebodyIsNamed) {
  const std::string inside = root_ + "/a/b/file";
  ASSERT_EQ(MakeOpenFolders(root_ + "/a/b"), OkStatus());
  const FolderUser stranger{.uid = kStranger, .groups = {kGroup}};
  EXPECT_EQ(ClosedFolder(inside, stranger), root_);
  EXPECT_EQ(ClosedFolder(inside, {.uid = geteuid(), .groups = {}}), "");
  ASSERT_EQ(chmod(root_.c_str(), 0711), 0);
  EXPECT_EQ(ClosedFolder(inside, stranger), "");
  ASSERT_EQ(chmod((root_ + "/a").c_str(), 0710), 0);
  EXPECT_EQ(ClosedFolder(inside, stranger), root_ + "/a");
  EXPECT_EQ(ClosedFolder(inside, {.uid = 0, .groups = {}}), "");
  EXPECT_EQ(ClosedFolder(root_ + "/a", stranger), "") << "only what is on the way to it";
  EXPECT_EQ(ClosedFolder(root_ + "/none/file", stranger), "") << "still to be made";
}

TEST_F(FoldersTest, AGroupMayComeThrough) {
  struct stat seen = {};
  ASSERT_EQ(chmod(root_.c_str(), 0710), 0);
  ASSERT_EQ(stat(root_.c_str(), &seen), 0);
  EXPECT_EQ(ClosedFolder(root_ + "/file", {.uid = kStranger, .groups = {kGroup, seen.st_gid}}), "");
  // The group's bits are the group's, also if others have more.
  ASSERT_EQ(chmod(root_.c_str(), 0701), 0);
  EXPECT_EQ(ClosedFolder(root_ + "/file", {.uid = kStranger, .groups = {seen.st_gid}}), root_);
}

TEST(IsInMemory, OnlyWhereNothingReachesADisk) {
  EXPECT_FALSE(IsInMemory("/proc/self"));
  EXPECT_FALSE(IsInMemory("/proc/none/such"));
  EXPECT_FALSE(IsInMemory("none-such"));
  EXPECT_FALSE(IsInMemory(""));
  struct stat seen = {};
  if (stat("/dev/shm", &seen) != 0) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_TRUE(IsInMemory("/dev/shm"));
  EXPECT_TRUE(IsInMemory("/dev/shm/none/such"));
}

}  // namespace
}  // namespace berth
