// SPDX-License-Identifier: Apache-2.0
// Defends: a disk that is given to QEMU is reached by it, through whatever folders were made for
// disks. What shelves keep is in volume_host_test.cc.
#include "runtime/volume/folder_shelf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

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
  for (const std::string folder : {"/lib", "/lib/berth", "/lib/berth/disks/volumes"}) {
    EXPECT_EQ(mode_of(folder), 0711U) << folder;
  }
  EXPECT_EQ(mode_of(""), 0700U) << "was there before";
  EXPECT_EQ(mode_of("/lib/berth/disks/snapshots"), 0700U);
  umask(mask);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace berth::runtime
