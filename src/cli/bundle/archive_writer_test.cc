// SPDX-License-Identifier: Apache-2.0
// Defends: an archive is readable by its owner alone, and whole or not there.
#include "cli/bundle/archive_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "cli/testing/unpacked.h"

namespace berth::cli {
namespace {

class ArchiveWriterTest : public ::testing::Test {
 protected:
  ArchiveWriterTest() {
    folder_ = (std::filesystem::temp_directory_path() / "berth-archive-XXXXXX").string();
    CHECK(mkdtemp(folder_.data()) != nullptr);
    path_ = folder_ + "/a.tar.gz";
  }
  ~ArchiveWriterTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
  WallTime now_ = WallTime::FromSeconds(1'700'000'000);
};

TEST_F(ArchiveWriterTest, WritesEntriesOfTar) {
  auto writer = ArchiveWriter::Begin(path_, "top", now_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Add("one.txt", "hello").ok());
  ASSERT_TRUE((*writer)->Add("two.txt", std::string(512, 'x')).ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "only when it is whole";
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ((*writer)->entries(), 2U);
  EXPECT_EQ((*writer)->bytes(), 517U);
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const std::string tar = UnpackedGz(path_);
  ASSERT_EQ(tar.size(), 512U * 6);
  EXPECT_EQ(tar.substr(0, 11), "top/one.txt");
  EXPECT_EQ(tar.substr(257, 5), "ustar");
  EXPECT_EQ(tar.substr(512, 5), "hello");
  EXPECT_EQ(tar.substr(1024, 11), "top/two.txt");
}

TEST_F(ArchiveWriterTest, LeavesNothingBehindWhenItIsNotFinished) {
  {
    ASSERT_TRUE(ArchiveWriter::Begin(path_, "top", now_).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ArchiveWriterTest, NeverReplacesAFile) {
  std::ofstream(path_) << "mine";
  const auto writer = ArchiveWriter::Begin(path_, "top", now_);
  EXPECT_TRUE(writer.status().Is(Reason::kConflict)) << writer.status();
  const auto nowhere = ArchiveWriter::Begin(folder_ + "/no/a.tar.gz", "top", now_);
  EXPECT_TRUE(nowhere.status().message().contains("No such file")) << nowhere.status();
}

TEST_F(ArchiveWriterTest, RefusesNamesThatDoNotFit) {
  auto writer = ArchiveWriter::Begin(path_, "top", now_);
  ASSERT_TRUE(writer.ok());
  EXPECT_TRUE((*writer)->Add(std::string(100, 'n'), "").Is(Reason::kBadRequest));
}

}  // namespace
}  // namespace berth::cli
