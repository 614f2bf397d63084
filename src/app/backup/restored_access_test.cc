// SPDX-License-Identifier: Apache-2.0
// Whoever was revoked after a copy was taken does not come back with it: tokens go, and who is on
// the operator's list is refused by those who read the records.
#include "app/backup/restored_access.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "apis/k8s/config_map.h"
#include "apiserver/authn/revoked_users.h"
#include "apiserver/cache/keys.h"
#include "client/records/revocations.h"
#include "meta/at_rest.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;
using pki::RevokedKind;

constexpr WallTime kThen = WallTime::FromSeconds(1'800'000'000);
constexpr std::string_view kSecrets = "/registry/core/secrets/berth-system/";

class RestoredAccessTest : public testing::Test {
 protected:
  void Put(const std::string& key, Bytes value = Bytes("v")) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(key, std::move(value)));
    ASSERT_TRUE(rt::RunTask(loop_, store_->Commit(std::move(txn))).ok());
  }
  size_t Count(const std::string& prefix) {
    store::RangeRequest request;
    request.start = prefix;
    request.end = store::PrefixEnd(prefix);
    const auto found = rt::RunTask(loop_, store_->Range(std::move(request)));
    return found.ok() ? found->count : 0;
  }
  static std::string KeyOf(const std::string& record) {
    return apiserver::StoreKey(kConfigMapKind, {.namespace_ = "berth-system", .name = record});
  }
  ConfigMap Record(const std::string& name) {
    store::RangeRequest request;
    request.start = KeyOf(name);
    const auto found = rt::RunTask(loop_, store_->Range(std::move(request)));
    if (!found.ok() || found->items.empty()) return {};
    const auto object = meta::DecodeAtRest(kConfigMapKind, found->items[0].value.view(), "");
    return object.ok() ? object->as<ConfigMap>() : ConfigMap();
  }
  void PutRecord(const std::string& name, std::map<std::string, std::string> data) {
    ConfigMap record;
    record.metadata.namespace_ = "berth-system";
    record.metadata.name = name;
    record.metadata.uid = "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10";
    record.data = std::move(data);
    Put(KeyOf(name), meta::EncodeAtRest(meta::Object::Of(kConfigMapKind, std::move(record))));
  }
  Status Enter(std::vector<pki::Revocation> revocations) {
    return rt::RunTask(loop_, EnterRevocations(loop_, *store_, std::move(revocations)));
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<store::MemoryStore> memory_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> store_ = memory_->NewHandle();
};

TEST_F(RestoredAccessTest, EveryTokenGoesAndOtherSecretsStay) {
  // More than one transaction takes.
  for (size_t i = 0; i < store::kMaxTxnKeys + 7; ++i) {
    Put(std::string(kSecrets) + "token-" + std::to_string(i));
    Put(std::string(kSecrets) + "join-token-" + std::to_string(i));
  }
  Put(std::string(kSecrets) + "other");
  Put("/registry/core/secrets/default/token-1");
  ASSERT_TRUE(rt::RunTask(loop_, VoidTokens(*store_)).ok());
  EXPECT_EQ(Count(std::string(kSecrets)), 1U);
  EXPECT_EQ(Count("/registry/core/secrets/default/"), 1U) << "a Secret of a user";
  ASSERT_TRUE(rt::RunTask(loop_, VoidTokens(*store_)).ok());
}

TEST_F(RestoredAccessTest, WhoIsOnTheListIsRefused) {
  ASSERT_TRUE(Enter({{.kind = RevokedKind::kHost, .name = "alpha", .until = kThen},
                     {.kind = RevokedKind::kHostSerial, .name = "c0ffee", .until = kThen},
                     {.kind = RevokedKind::kUser, .name = "jane", .until = kThen},
                     {.kind = RevokedKind::kUserHex, .name = "6a40", .until = kThen},
                     {.kind = RevokedKind::kUserSerial, .name = "3f09", .until = std::nullopt}})
                  .ok());
  const WallTime later = kThen + Duration::Seconds(1);
  const client::Revocations hosts(Record("revoked-hosts").data);
  EXPECT_TRUE(hosts.Covers("alpha", "1", kThen));
  EXPECT_FALSE(hosts.Covers("alpha", "1", later)) << "it has joined again since";
  EXPECT_TRUE(hosts.Covers("beta", "c0ffee", later));
  const apiserver::RevokedUsers users(Record("revoked-users").data);
  EXPECT_TRUE(users.Covers("jane", "1", kThen));
  EXPECT_FALSE(users.Covers("jane", "1", later));
  EXPECT_TRUE(users.Covers("j@", "1", kThen));
  EXPECT_TRUE(users.Covers("joe", "3f09", later));
  EXPECT_FALSE(users.Covers("joe", "1", kThen));
  EXPECT_FALSE(Record("revoked-users").metadata.uid.empty()) << "an object like others";
}

TEST_F(RestoredAccessTest, NoRevocationBecomesWeaker) {
  const std::string then = FormatRfc3339(kThen);
  PutRecord(
      "revoked-users",
      {{"user.early", then}, {"user.late", then}, {"user.typo", "soon"}, {"user.kept", then}});
  const WallTime before = kThen - Duration::Hours(1);
  const WallTime after = kThen + Duration::Hours(1);
  const std::vector<pki::Revocation> list = {
      {.kind = RevokedKind::kUser, .name = "early", .until = before},
      {.kind = RevokedKind::kUser, .name = "late", .until = after},
      {.kind = RevokedKind::kUser, .name = "typo", .until = after},
      {.kind = RevokedKind::kUser, .name = "twice", .until = after},
      {.kind = RevokedKind::kUser, .name = "twice", .until = before}};
  ASSERT_TRUE(Enter(list).ok());
  ASSERT_TRUE(Enter(list).ok()) << "again, for nothing";
  const std::map<std::string, std::string> expected = {{"user.early", then},
                                                       {"user.kept", then},
                                                       {"user.late", FormatRfc3339(after)},
                                                       {"user.twice", FormatRfc3339(after)},
                                                       {"user.typo", "soon"}};
  EXPECT_EQ(Record("revoked-users").data, expected);
  EXPECT_EQ(Record("revoked-users").metadata.uid, "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10");
}

TEST_F(RestoredAccessTest, ARecordThatWouldBeTooLargeIsNotWritten) {
  PutRecord("revoked-users", {{"user.large", std::string(1024 * 1024, 'x')}});
  const Status entered = Enter({{.kind = RevokedKind::kUser, .name = "jane", .until = kThen}});
  EXPECT_TRUE(entered.Is(Reason::kBadRequest)) << entered;
  EXPECT_TRUE(entered.message().starts_with("configmap berth-system/revoked-users with"))
      << entered;
  EXPECT_EQ(Record("revoked-users").data.size(), 1U);
}

TEST(RevocationFile, IsReadWholeOrNotAtAll) {
  const std::string folder = testing::TempDir() + "berth_revocation_file";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/list";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return ReadRevocationList(path, kThen);
  };
  EXPECT_EQ(read("host alpha\nuser jane\n")->size(), 2U);
  const auto wrong = read("host alpha\nuser\n");
  EXPECT_TRUE(wrong.status().message().starts_with("revocations " + path + ": line 2: has 1 words"))
      << wrong.status();
  const auto large = read(std::string(pki::kRevocationListBytesMax + 1, '#'));
  EXPECT_TRUE(large.status().Is(Reason::kRequestTooLarge)) << large.status();
  EXPECT_FALSE(ReadRevocationList(folder, kThen).ok()) << "a folder is no list";
  const auto missing = ReadRevocationList(folder + "/none", kThen);
  EXPECT_TRUE(missing.status().message().ends_with("No such file or directory"))
      << missing.status();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::app
