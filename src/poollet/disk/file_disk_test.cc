// SPDX-License-Identifier: Apache-2.0
// Files that only their owner may read, whole after every write.
#include "poollet/disk/file_disk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"

namespace berth::poollet {
namespace {

class FileDiskTest : public testing::Test {
 protected:
  FileDiskTest()
      : folder_(testing::TempDir() + "/file_disk_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }
  ~FileDiskTest() override { std::filesystem::remove_all(folder_); }
  mode_t Mode(const std::string& path) {
    struct stat info = {};
    CHECK(stat(path.c_str(), &info) == 0) << path;
    return info.st_mode & 0777;
  }
  const std::string folder_;
  rt::SimLoop loop_{1};
  rt::SimBlockingPool pool_;
  FileDisk disk_{folder_, pool_};
};

TEST_F(FileDiskTest, AppendsAndReplacesWhatIsReadBack) {
  EXPECT_EQ(rt::RunTask(loop_, disk_.Read("x")).status().reason(), Reason::kNotFound);
  EXPECT_TRUE(rt::RunTask(loop_, disk_.Append("x", "one")).ok());
  EXPECT_TRUE(rt::RunTask(loop_, disk_.Append("x", "two")).ok());
  EXPECT_EQ(*rt::RunTask(loop_, disk_.Read("x")), "onetwo");
  EXPECT_TRUE(rt::RunTask(loop_, disk_.Replace("x", "three")).ok());
  EXPECT_TRUE(rt::RunTask(loop_, disk_.Append("x", "!")).ok());
  EXPECT_EQ(*rt::RunTask(loop_, disk_.Read("x")), "three!");
}

TEST_F(FileDiskTest, FilesAndFolderAreForTheirOwnerOnly) {
  EXPECT_TRUE(rt::RunTask(loop_, disk_.Append("x", "one")).ok());
  EXPECT_EQ(Mode(folder_), 0700U);
  EXPECT_EQ(Mode(folder_ + "/x"), 0600U);
}

TEST_F(FileDiskTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_) << "a file";
  const Status status = rt::RunTask(loop_, disk_.Append("x", "one"));
  EXPECT_NE(status.message().find(folder_), std::string_view::npos) << status;
}

}  // namespace
}  // namespace berth::poollet
