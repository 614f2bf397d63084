// SPDX-License-Identifier: Apache-2.0
// What was checked goes into a store whole, but for tokens; what a store would not take is noticed
// before.
#include "app/backup/backup_contents.h"

#include <gtest/gtest.h>

#include <string>

#include "apis/k8s/secret.h"
#include "apiserver/cache/keys.h"
#include "app/backup/fake_backup.h"
#include "app/backup/state_copy.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

Result<BackupContents> Check(const FakeBackup& backup) {
  TRY(const auto reader, BackupReader::Open(FakeBackup::Source(backup.Seal(100))));
  return CheckBackup(*reader);
}

Status Why(const FakeBackup& backup) { return Check(backup).status(); }

TEST(BackupContents, GoIntoAStoreWithoutTokens) {
  FakeBackup backup;
  for (int i = 100; i < 400; ++i) backup.AddText('K', "/a/" + std::to_string(i), "value");
  const std::string token = apiserver::StoreKey(
      apis::k8s::kSecretKind, {.namespace_ = "berth-system", .name = "join-token-one"});
  backup.AddText('K', token, "a token");
  backup.AddText('F', "pki/ca.pem", "an authority");
  backup.AddHead(17, 1'700'000'000);
  backup.AddEnd();
  const auto contents = Check(backup);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->head.revision, 17);
  EXPECT_EQ(contents->files.at("pki/ca.pem"), "an authority");

  rt::SimLoop loop(1);
  const auto memory = store::MemoryStore::Open(loop);
  const auto handle = memory->NewHandle();
  auto reader = BackupReader::Open(FakeBackup::Source(backup.Seal()));
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(rt::RunTask(loop, FillFromBackup(*handle, reader->get())).ok());
  EXPECT_EQ(rt::RunTask(loop, SumState(*handle))->keys, 300U);
}

TEST(BackupContents, AreRefusedIfARestoreCouldNotEnd) {
  FakeBackup huge;  // a restore goes on a thousand million revisions behind it
  huge.AddHead((uint64_t{1} << 63U) - 1, 0);
  huge.AddEnd();
  EXPECT_TRUE(Why(huge).Is(Reason::kBadRequest));
  FakeBackup negative;
  negative.AddHead(~uint64_t{0}, 0);
  negative.AddEnd();
  EXPECT_TRUE(Why(negative).Is(Reason::kBadRequest));
  FakeBackup twice;
  twice.AddText('K', "/a", "one");
  twice.AddText('K', "/a", "two");
  twice.AddHead(17, 0);
  twice.AddEnd();
  EXPECT_TRUE(Why(twice).Is(Reason::kBadRequest));
  FakeBackup mark;
  mark.AddText('K', kMovedKey, "elsewhere");
  mark.AddHead(17, 0);
  mark.AddEnd();
  EXPECT_TRUE(Why(mark).Is(Reason::kBadRequest));
}

}  // namespace
}  // namespace berth::app
