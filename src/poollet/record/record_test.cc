// SPDX-License-Identifier: Apache-2.0
// What was acknowledged is found again after any crash; what was damaged is noticed, not guessed.
#include "poollet/record/record.h"

#include <gtest/gtest.h>

#include "poollet/disk/sim_disk.h"
#include "poollet/record/checksum.h"
#include "poollet/record/log_format.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::poollet {
namespace {

RecordEntry EntryOf(std::string uid, uint64_t placement) {
  RecordEntry entry;
  entry.uid = std::move(uid);
  entry.placement = {.incarnation = 1, .number = placement};
  entry.pool_uid = "pool";
  entry.hash = std::string("\0\xff", 2);
  entry.assign = "body";
  entry.amounts = {{"cpu", 1000}, {"memory", 7}};
  return entry;
}

RecordChange Put(std::string uid, uint64_t placement) {
  RecordChange change;
  change.puts.push_back(EntryOf(std::move(uid), placement));
  return change;
}

RecordChange Forget(std::string uid) {
  RecordChange change;
  change.forgets.push_back(std::move(uid));
  return change;
}

RecordState SampleState() {
  RecordState state;
  state.host.cluster_id = "cluster";
  state.host.servers = {"a:1", "b:2"};
  state.host.term = 3;
  state.host.incarnation = 4;
  state.host.revision = 5;
  state.host.events_told["Machine"] = 1'700'000'000;
  state.host.pools = {{.kind = "MachinePool", .name = "p", .uid = "u", .limits = {{"cpu", 9}}}};
  for (const char* uid : {"a", "b", "c"}) state.entries[uid] = EntryOf(uid, 1);
  state.entries["b"].phase = Phase::kRemoving;
  state.entries["b"].kind = fleet::ObjectKind::kVolume;
  state.entries["b"].was_available = true;
  state.entries["c"].phase = Phase::kGone;
  state.entries["c"].create_begun = true;
  state.entries["c"].had_secrets = true;
  state.entries["a"].runtime_id = "vm-7";
  return state;
}

TEST(RecordFormat, AStateIsReadBackAsItWasWritten) {
  const auto parsed = ParseFile("record", EncodeFile(SampleState()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->state, SampleState());
  EXPECT_EQ(parsed->cut_bytes, 0U);
}

TEST(RecordFormat, TheChecksumIsCastagnolis) { EXPECT_EQ(Crc32c("123456789"), 0xE3069283U); }

TEST(RecordFormat, AWriteTornAtAnyByteIsCutAndNothingElse) {
  const std::string whole = EncodeFile(SampleState());
  const std::string entry = EncodeEntry(Put("d", 2));
  for (size_t kept = 0; kept < entry.size(); ++kept) {
    const auto parsed = ParseFile("record", whole + entry.substr(0, kept));
    ASSERT_TRUE(parsed.ok()) << kept << ": " << parsed.status();
    EXPECT_EQ(parsed->state, SampleState()) << kept;
    EXPECT_EQ(parsed->valid_bytes, whole.size()) << kept;
    EXPECT_EQ(parsed->cut_bytes, kept);
  }
}

TEST(RecordFormat, AnEndOfZerosOrNoiseIsCut) {
  const std::string whole = EncodeFile(SampleState());
  for (const std::string& noise : {std::string(500, '\0'), std::string(500, '\x9d')}) {
    const auto parsed = ParseFile("record", whole + noise);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->cut_bytes, 500U);
  }
}

TEST(RecordFormat, DamageInTheMiddleIsAnErrorThatNamesFileAndOffset) {
  const std::string head = EncodeFile(SampleState());
  const std::string middle = EncodeEntry(Put("d", 2));
  const std::string file = head + middle + EncodeEntry(Put("e", 2));
  for (size_t at = 0; at < middle.size(); ++at) {
    std::string damaged = file;
    damaged[head.size() + at] = static_cast<char>(damaged[head.size() + at] ^ 0x20);
    const auto parsed = ParseFile("record", damaged);
    ASSERT_FALSE(parsed.ok()) << at;
    EXPECT_EQ(parsed.status().reason(), Reason::kInvalid);
    EXPECT_NE(parsed.status().message().find("record: offset " + std::to_string(head.size())),
              std::string_view::npos)
        << parsed.status();
  }
}

TEST(RecordFormat, AnotherVersionIsRefusedByItsNumber) {
  std::string file = EncodeFile(SampleState());
  file[8] = 2;
  const auto parsed = ParseFile("record", file);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().message(), "record: version 2, this poollet reads version 1");
  EXPECT_FALSE(ParseFile("record", "BERTH").ok());
}

class RecordTest : public testing::Test {
 protected:
  std::unique_ptr<Record> Open() {
    auto record = rt::RunTask(loop_, Record::Open(loop_, disk_));
    CHECK(record.ok()) << record.status();
    return *std::move(record);
  }
  void CloseAll(std::unique_ptr<Record>& record) {
    EXPECT_TRUE(rt::RunTask(loop_, record->Close()).ok());
    record.reset();
  }
  rt::SimLoop loop_{7};
  SimDisk disk_{7};
};

TEST_F(RecordTest, WhatWasAcknowledgedIsFoundAgain) {
  auto record = Open();
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("a", 1))).ok());
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("b", 1))).ok());
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Forget("a"))).ok());
  CloseAll(record);
  record = Open();
  EXPECT_FALSE(record->state().entries.contains("a"));
  EXPECT_TRUE(record->state().entries.contains("b"));
  CloseAll(record);
}

TEST_F(RecordTest, ChangesThatWaitTogetherAreOneWriteInTheirOrder) {
  auto record = Open();
  const uint64_t before = disk_.writes();
  std::vector<rt::Task<Status>> writes;
  writes.push_back(record->Write(Put("first", 1)));
  for (uint64_t i = 1; i <= 20; ++i) writes.push_back(record->Write(Put("a", i)));
  writes.push_back(record->Write(Forget("a")));
  writes.push_back(record->Write(Put("a", 99)));
  for (const Status& status : rt::RunTask(loop_, rt::JoinAll(std::move(writes)))) {
    EXPECT_TRUE(status.ok());
  }
  EXPECT_EQ(disk_.writes() - before, 2U);
  CloseAll(record);
  record = Open();
  EXPECT_EQ(record->state().entries.at("a").placement.number, 99U);
  CloseAll(record);
}

TEST_F(RecordTest, AHistoryIsRewrittenWhenItIsMostOfTheFile) {
  auto record = Open();
  RecordChange large = Put("a", 1);
  large.puts[0].assign = std::string(20'000, 'x');
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(rt::RunTask(loop_, record->Write(large)).ok());
  EXPECT_LT(disk_.files().at("record").size(), kRecordRewriteMin + 30'000);
  CloseAll(record);
  record = Open();
  EXPECT_EQ(record->state().entries.size(), 1U);
  CloseAll(record);
}

TEST_F(RecordTest, AFullDiskFailsTheWriteAndHarmsNothingElse) {
  auto record = Open();
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("a", 1))).ok());
  disk_.FailWrites(Internal("no space left"));
  EXPECT_FALSE(rt::RunTask(loop_, record->Write(Put("b", 1))).ok());
  EXPECT_FALSE(record->state().entries.contains("b"));
  disk_.FailWrites(OkStatus());
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("c", 1))).ok());
  CloseAll(record);
  record = Open();
  EXPECT_EQ(record->state().entries.size(), 2U);
  CloseAll(record);
}

TEST_F(RecordTest, ADamagedFileIsNotOpened) {
  auto record = Open();
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("a", 1))).ok());
  EXPECT_TRUE(rt::RunTask(loop_, record->Write(Put("b", 1))).ok());
  CloseAll(record);
  std::string& file = disk_.files().at("record");
  file[file.find("a\x10")] ^= 1;
  EXPECT_FALSE(rt::RunTask(loop_, Record::Open(loop_, disk_)).ok());
}

// Kills the process at a random moment of a random history, many times over one disk.
TEST(RecordProperty, P4_NothingAcknowledgedIsLostByAnyCrash) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    rt::SimLoop loop(seed);
    SimDisk disk(seed);
    Random random(seed);
    uint64_t acknowledged = 0;  // values are written in order 1, 2, 3 …
    uint64_t sent = 0;
    for (int life = 0; life < 8; ++life) {
      auto opened = rt::RunTask(loop, Record::Open(loop, disk));
      ASSERT_TRUE(opened.ok()) << "seed " << seed << ": " << opened.status();
      auto record = *std::move(opened);
      const auto found = record->state().entries.find("a");
      const uint64_t value =
          found == record->state().entries.end() ? 0 : found->second.placement.number;
      ASSERT_GE(value, acknowledged) << "seed " << seed;
      ASSERT_LE(value, sent) << "seed " << seed;
      rt::TaskScope scope(loop);
      const uint64_t count = random.Below(30);
      std::vector<std::optional<Status>> answers(count);
      for (uint64_t i = 0; i < count; ++i) {
        scope.Spawn("write",
                    rt::internal::StoreResult(record->Write(Put("a", ++sent)), &answers[i]));
        loop.RunFor(Duration::Micros(random.Between(0, 2000)));
      }
      disk.Crash();
      for (uint64_t i = 0; i < count; ++i) {
        if (answers[i].has_value() && answers[i]->ok()) acknowledged = sent - count + i + 1;
      }
      ASSERT_TRUE(rt::RunTask(loop, record->Abandon()).ok());
      ASSERT_TRUE(rt::RunTask(loop, scope.Close()).ok());
    }
  }
}

}  // namespace
}  // namespace berth::poollet
