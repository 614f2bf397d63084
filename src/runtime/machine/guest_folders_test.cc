// SPDX-License-Identifier: Apache-2.0
// Defends: what a guest needs is where QEMU reaches it, whoever that is and whatever the umask, and
// secrets of guests are on no disk unless somebody accepts that.
#include "runtime/machine/guest_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/folders.h"
#include "rt/thread_pool.h"

namespace berth::runtime {
namespace {

class GuestFoldersTest : public testing::Test {
 protected:
  GuestFoldersTest() : mask_(umask(0077)) {
    std::string pattern = testing::TempDir() + "guests-XXXXXX";
    root_ = mkdtemp(pattern.data());
    places_.folder = root_ + "/lib/berth/machines";
    places_.run_folder = root_ + "/run/berth/machines";
    places_.secrets_may_be_on_disk = true;
  }
  ~GuestFoldersTest() override {
    umask(mask_);
    std::filesystem::remove_all(root_);
  }
  Status Open() { return GuestFolders::Open(places_, pool_, pool_).status(); }
  mode_t ModeOf(const std::string& folder) const {
    struct stat seen = {};
    return stat((root_ + folder).c_str(), &seen) == 0 ? seen.st_mode & 07777U : 0;
  }
  rt::ThreadPool pool_{{.threads = 1, .queue_max = 16, .name = "files"}};
  const mode_t mask_;
  std::string root_;
  GuestFolders::Places places_;
};

TEST_F(GuestFoldersTest, QemuComesThroughWhatTheyMake) {
  ASSERT_EQ(Open(), OkStatus());
  for (const std::string folder :
       {"/lib", "/lib/berth", "/lib/berth/machines", "/run", "/run/berth", "/run/berth/machines"}) {
    EXPECT_EQ(ModeOf(folder), 0711U) << folder;
  }
  EXPECT_EQ(ModeOf(""), 0700U) << "was there before";
}

TEST_F(GuestFoldersTest, AFolderInTheWayOfQemuIsNamedWithWhatToDo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root runs guests as somebody else";
  places_.guest_user = "nobody";
  const Status closed = Open();
  EXPECT_EQ(closed.reason(), Reason::kBadRequest);
  EXPECT_NE(closed.message().find("the guests' user nobody may not enter " + root_ + ", which is"),
            std::string::npos)
      << closed;
  EXPECT_NE(closed.message().find("chmod o+x " + root_), std::string::npos) << closed;
  ASSERT_EQ(chmod(root_.c_str(), 0711), 0);
  EXPECT_EQ(Open(), OkStatus());
  ASSERT_EQ(chmod((root_ + "/run/berth").c_str(), 0700), 0);
  EXPECT_NE(Open().message().find("may not enter " + root_ + "/run/berth,"), std::string::npos);
}

TEST_F(GuestFoldersTest, R9_SecretsStayInMemoryUnlessSomebodyAcceptsADisk) {
  if (IsInMemory(root_)) GTEST_SKIP() << "folders of tests are in memory here";
  places_.secrets_may_be_on_disk = false;
  const Status refused = Open();
  EXPECT_EQ(refused.reason(), Reason::kBadRequest);
  EXPECT_NE(refused.message().find(places_.run_folder + " is not in memory"), std::string::npos)
      << refused;
  EXPECT_NE(refused.message().find("--secrets-on-disk"), std::string::npos) << refused;
  places_.secrets_may_be_on_disk = true;
  EXPECT_EQ(Open(), OkStatus());
}

TEST_F(GuestFoldersTest, AFolderInMemoryNeedsNobodysWord) {
  if (!IsInMemory("/dev/shm")) GTEST_SKIP() << "there is no memory to be a folder";
  std::string pattern = "/dev/shm/berth-test-XXXXXX";
  const std::string memory = mkdtemp(pattern.data());
  places_.run_folder = memory + "/run";
  places_.secrets_may_be_on_disk = false;
  EXPECT_EQ(Open(), OkStatus());
  std::filesystem::remove_all(memory);
}

}  // namespace
}  // namespace berth::runtime
