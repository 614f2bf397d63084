// SPDX-License-Identifier: Apache-2.0
// Records are read back as they were written, and damage never opens a door.
#include <gtest/gtest.h>

#include "apiserver/registry/registry_world.h"
#include "client/records/cluster_record.h"
#include "client/records/host_record.h"
#include "client/records/revocations.h"

namespace berth::client {
namespace {

constexpr std::string_view kId = "6a2b7c1e-0f63-4a36-9d21-3b2f8d1f7a10";
constexpr WallTime kNow = WallTime::FromSeconds(1'800'000'000);

class RecordsTest : public testing::Test {
 protected:
  RecordsTest() { world_.MakeNamespace(std::string(kRecordNamespace)); }
  apiserver::RegistryWorld world_{7};
};

TEST_F(RecordsTest, TheClusterIsPublishedAndReadBack) {
  const ClusterIdentity identity{.id = std::string(kId), .incarnation = 2, .start = 5};
  ASSERT_TRUE(world_.Run(PublishCluster(world_.client(), identity)).ok());
  ASSERT_TRUE(world_.Run(PublishCluster(world_.client(), identity)).ok());
  const auto entries = world_.Run(ReadRecord(world_.client(), std::string(kClusterRecord)));
  ASSERT_TRUE(entries.ok() && entries->has_value());
  const auto parsed = ParseCluster(**entries);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, identity);
  EXPECT_FALSE(ParseCluster({{"id", "nonsense"}}).ok());
}

TEST(HostRecord, IsReadBackAndKnowsItsTwoNewestKeys) {
  HostRecord record{.grant = {.labels = {{"zone", "a"}}}, .keys = {"k1"}, .joined = kNow};
  RememberKey(record, "k2");
  RememberKey(record, "k3");
  EXPECT_TRUE(KnowsKey(record, "k3"));
  EXPECT_TRUE(KnowsKey(record, "k2"));
  EXPECT_FALSE(KnowsKey(record, "k1"));
  const auto parsed = ParseHostRecord(FormatHostRecord(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, record);
}

TEST(HostRecord, NamesThatDoNotFitACertificateAreNone) {
  EXPECT_TRUE(IsHostName("rack1-host.example"));
  EXPECT_FALSE(IsHostName(""));
  EXPECT_FALSE(IsHostName("-a"));
  EXPECT_FALSE(IsHostName("A"));
  EXPECT_FALSE(IsHostName("a..b"));
  EXPECT_FALSE(IsHostName("a:b"));
  EXPECT_FALSE(IsHostName(std::string(kHostNameMax + 1, 'a')));
}

TEST_F(RecordsTest, ARevokedHostIsVoidUntilItJoinsAgain) {
  ASSERT_TRUE(world_.Run(RevokeHost(world_.client(), "a", kNow)).ok());
  ASSERT_TRUE(world_.Run(RevokeSerial(world_.client(), "c0ffee", kNow)).ok());
  const auto entries = world_.Run(ReadRecord(world_.client(), std::string(kRevocationRecord)));
  ASSERT_TRUE(entries.ok() && entries->has_value());
  const Revocations revocations(**entries);
  EXPECT_TRUE(revocations.Covers("a", "1", kNow - Duration::Hours(1)));
  EXPECT_FALSE(revocations.Covers("a", "1", kNow + Duration::Seconds(1)));
  EXPECT_FALSE(revocations.Covers("b", "1", kNow - Duration::Hours(1)));
  EXPECT_TRUE(revocations.Covers("b", "c0ffee", kNow + Duration::Hours(1)));
}

TEST(Revocations, AnEntryThatCannotBeReadRevokesForGood) {
  const Revocations revocations({{"host.a", "yesterday"}});
  EXPECT_TRUE(revocations.Covers("a", "1", kNow + Duration::Hours(100'000)));
}

}  // namespace
}  // namespace berth::client
