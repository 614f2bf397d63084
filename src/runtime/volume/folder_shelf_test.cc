// SPDX-License-Identifier: Apache-2.0
// Defends: a disk that is given to QEMU is reached by it, through whatever folders were made for
// disks, and is ours again when it is whole. What shelves keep is in volume_host_test.cc.
#include "runtime/volume/folder_shelf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "rt/asio/asio_loop.h"
#include "rt/thread_pool.h"

namespace berth::runtime {
namespace {

TEST(FolderShelf, OthersComeThroughFoldersThatItMakesWhateverTheUmask) {
  std::string pattern = testing::TempDir() + "shelf-XXXXXX";
  const std::string root = mkdtemp(pattern.data());
  const mode_t mask = umask(0077);
  rt::ThreadPool pool(rt::ThreadPool::Options{});
  EXPECT_TRUE(FolderShelf::Open(root + "/lib/berth/disks", pool).ok());
  const auto mode_of = [&root](const std::string& folder) {
    struct stat seen = {};
    return stat((root + folder).c_str(), &seen) == 0 ? seen.st_mode & 07777U : 0;
  };
  for (const std::string folder :
       {"/lib", "/lib/berth", "/lib/berth/disks/volumes", "/lib/berth/disks/snapshots"}) {
    EXPECT_EQ(mode_of(folder), 0711U) << folder;
  }
  EXPECT_EQ(mode_of(""), 0700U) << "was there before";
  umask(mask);
  std::filesystem::remove_all(root);
}

TEST(FolderShelf, ADiskThatAnotherUserHasWrittenIsOursWhenItIsWhole) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t kSomebody = 12345;
  std::string pattern = testing::TempDir() + "shelf-XXXXXX";
  const std::string root = mkdtemp(pattern.data());
  rt::ThreadPool pool(rt::ThreadPool::Options{});
  rt::AsioLoop loop("test");
  auto shelf = *FolderShelf::Open(root, pool);
  for (const ShelfKind kind : {ShelfKind::kVolume, ShelfKind::kSnapshot}) {
    ASSERT_EQ(rt::RunTask(loop, shelf->Put(kind, "a", "{}")), OkStatus());
    const std::string part = shelf->PartOf(kind, "a", DiskFormat::kQcow2).path;
    std::ofstream(part) << "a copy";
    ASSERT_EQ(chown(part.c_str(), kSomebody, kSomebody), 0);
    ASSERT_EQ(chmod(part.c_str(), 0660), 0);
    ASSERT_EQ(rt::RunTask(loop, shelf->Settle(kind, "a", DiskFormat::kQcow2)), OkStatus());
    struct stat seen = {};
    ASSERT_EQ(stat(shelf->DiskOf(kind, "a", DiskFormat::kQcow2).path.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_uid, 0U);
    EXPECT_EQ(seen.st_gid, 0U);
    EXPECT_EQ(seen.st_mode & 07777U, 0600U);
  }
  shelf.reset();
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace berth::runtime
