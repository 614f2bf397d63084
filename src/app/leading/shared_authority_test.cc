// SPDX-License-Identifier: Apache-2.0
#include "app/leading/shared_authority.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "pki/certificate_authority.h"
#include "pki/private_file.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

class SharedAuthorityTest : public testing::Test {
 protected:
  SharedAuthorityTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth_test_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~SharedAuthorityTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string Folder(const std::string& name) const { return folder_ + "/" + name; }
  Status Share(const std::string& name, pki::NoAuthority none = pki::NoAuthority::kMakesOne) {
    return rt::RunTask(loop_, ShareAuthority(store_.get(), Folder(name), loop_.WallNow(), none));
  }
  Status Check(const std::string& name) {
    return rt::RunTask(loop_, CheckSharedAuthority(store_.get(), Folder(name), loop_.WallNow()));
  }
  size_t Stored() {
    const store::RangeRequest all{.end = std::string(store::kNoEnd)};
    const auto found = rt::RunTask(loop_, store_->Range(all));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->items.size() : 0;
  }
  std::string KeyOf(const std::string& name) const {
    const Result<std::string> key = pki::ReadPrivateFile(Folder(name) + "/ca.pem");
    return key.ok() ? *key : "";
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<store::MemoryStore> memory_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> store_ = memory_->NewHandle();
  std::string folder_;
};

TEST_F(SharedAuthorityTest, TheFirstMakesItAndTheOthersTakeIt) {
  ASSERT_TRUE(Share("a").ok());
  ASSERT_TRUE(Share("b").ok());
  EXPECT_FALSE(KeyOf("a").empty());
  EXPECT_EQ(KeyOf("a"), KeyOf("b"));
  struct stat status{};
  ASSERT_EQ(::stat((Folder("b") + "/ca.pem").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  // At every start.
  EXPECT_TRUE(Share("a").ok());
  EXPECT_TRUE(Share("b").ok());
}

TEST_F(SharedAuthorityTest, AnAuthorityOfAnotherClusterIsLeftAlone) {
  ASSERT_TRUE(pki::CertificateAuthority::LoadOrCreate(Folder("other"), loop_.WallNow()).ok());
  const std::string before = KeyOf("other");
  ASSERT_TRUE(Share("a").ok());
  const Status refused = Share("other");
  EXPECT_EQ(refused.reason(), Reason::kConflict);
  EXPECT_NE(refused.message().find("other/ca.pem"), std::string_view::npos) << refused;
  EXPECT_EQ(KeyOf("other"), before);
  EXPECT_NE(KeyOf("a"), before);
}

TEST_F(SharedAuthorityTest, AServerThatWasAwayDuringAChangeTakesItAndAnOlderStoreGetsItBack) {
  ASSERT_TRUE(Share("a").ok());
  ASSERT_TRUE(Share("b").ok());
  const WallTime now = loop_.WallNow();
  auto changed = pki::CertificateAuthority::LoadOrCreate(Folder("a"), now).value();
  const std::string before = changed.text();
  const pki::Rotation plan{.id = "x", .signs_from = now, .switch_after = now};
  ASSERT_TRUE(changed.Replace(changed.Rotated(plan, now).value(), now).ok());
  ASSERT_TRUE(changed.Replace(changed.Retired("y").value(), now).ok());
  // The folder is later than the store, as after a restore.
  ASSERT_TRUE(Share("a").ok());
  EXPECT_EQ(KeyOf("a"), changed.text());
  EXPECT_EQ(KeyOf("b"), before);
  ASSERT_TRUE(Share("b").ok());
  EXPECT_EQ(KeyOf("b"), changed.text());
}

TEST_F(SharedAuthorityTest, C38_NoneIsMadeForAnEmptyStoreWhereThatIsForbidden) {
  for (const Status& refused : {Check("a"), Share("a", pki::NoAuthority::kIsRefused)}) {
    EXPECT_EQ(refused.reason(), Reason::kNotFound);
    EXPECT_NE(refused.message().find("the store has no certificate authority"), std::string::npos)
        << refused;
    EXPECT_NE(refused.message().find("a/ca.pem is missing"), std::string::npos) << refused;
  }
  EXPECT_FALSE(std::filesystem::exists(Folder("a")));
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(SharedAuthorityTest, TheStoresIsTakenAlsoWhereNoneMayBeMade) {
  ASSERT_TRUE(Share("a").ok());
  EXPECT_TRUE(Check("b").ok());
  EXPECT_FALSE(std::filesystem::exists(Folder("b"))) << "looking takes nothing";
  const Status taken = Share("b", pki::NoAuthority::kIsRefused);
  ASSERT_TRUE(taken.ok()) << taken;
  EXPECT_EQ(KeyOf("b"), KeyOf("a"));
  EXPECT_TRUE(Share("b", pki::NoAuthority::kIsRefused).ok()) << "at every start";
}

// The first server of a store brings it: nothing new is made.
TEST_F(SharedAuthorityTest, TheFoldersOwnIsSharedAlsoWhereNoneMayBeMade) {
  ASSERT_TRUE(pki::CertificateAuthority::LoadOrCreate(Folder("a"), loop_.WallNow()).ok());
  const std::string before = KeyOf("a");
  EXPECT_TRUE(Check("a").ok());
  EXPECT_EQ(Stored(), 0U) << "looking writes nothing";
  const Status brought = Share("a", pki::NoAuthority::kIsRefused);
  ASSERT_TRUE(brought.ok()) << brought;
  EXPECT_EQ(KeyOf("a"), before);
  ASSERT_TRUE(Share("b").ok());
  EXPECT_EQ(KeyOf("b"), before);
}

}  // namespace
}  // namespace berth::app
