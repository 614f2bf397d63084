// SPDX-License-Identifier: Apache-2.0
// What a writer writes a reader takes; what would break a restore, or reach beyond it, is refused.
#include "app/backup/entry_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "store/store.h"

namespace berth::app {
namespace {

TEST(EntryRules, TakeWhatAServerKeeps) {
  EntryRules rules;
  EXPECT_TRUE(rules.CheckValue("/a", 0).ok());
  EXPECT_TRUE(rules.CheckValue("/a/b", store::kMaxValueBytes).ok());
  EXPECT_TRUE(rules.CheckValue(std::string(store::kMaxKeyBytes, 'k'), 1).ok());
  EXPECT_TRUE(rules.CheckFile("pki/ca.pem", 1024 * 1024).ok());
  EXPECT_TRUE(rules.CheckFile("pki/gr\xc3\xbc\xc3\x9f e.pem", 0).ok());
  EXPECT_TRUE(rules.CheckHead(17, 1'700'000'000).ok());
  EXPECT_TRUE(rules.CheckEnd().ok());
}

TEST(EntryRules, AHeadIsOneAndItsRevisionLeavesRoom) {
  EntryRules rules;
  EXPECT_FALSE(rules.CheckEnd().ok());
  EXPECT_FALSE(rules.CheckHead(-1, 0).ok());
  EXPECT_FALSE(rules.CheckHead(0, -1).ok());
  EXPECT_FALSE(rules.CheckHead(std::numeric_limits<int64_t>::max(), 0).ok());
  EXPECT_FALSE(rules.CheckEnd().ok());
  EXPECT_TRUE(rules.CheckHead(kBackupRevisionMax, 0).ok());
  EXPECT_FALSE(rules.CheckHead(1, 0).ok());
}

TEST(EntryRules, FilesAreThoseOfOneFolder) {
  for (const std::string_view name : {std::string_view(""),
                                      std::string_view("pki/"),
                                      std::string_view("ca.pem"),
                                      std::string_view("/etc/passwd"),
                                      std::string_view("pki/../ca.pem"),
                                      std::string_view("pki/.hidden"),
                                      std::string_view("pki/a/b"),
                                      std::string_view("pki/ca.pem\0x", 12),
                                      std::string_view("pki/a\nb")}) {
    EXPECT_TRUE(EntryRules().CheckFile(name, 1).Is(Reason::kBadRequest)) << name;
  }
  EXPECT_FALSE(EntryRules().CheckFile("pki/" + std::string(256, 'n'), 1).ok());
}

TEST(EntryRules, FilesFitIntoMemory) {
  EntryRules rules;
  const size_t each = kBackupFilesBytesMax / 8 - kBackupFileMore - 5;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(rules.CheckFile("pki/f", each).ok());
  EXPECT_FALSE(rules.CheckFile("pki/f", 0).ok());
}

TEST(EntryRules, KeysAreThoseOfAStoreInTheirOrder) {
  EntryRules rules;
  EXPECT_FALSE(rules.CheckValue("", 1).ok());
  EXPECT_FALSE(rules.CheckValue(std::string(store::kMaxKeyBytes + 1, 'k'), 1).ok());
  EXPECT_FALSE(rules.CheckValue("/k", store::kMaxValueBytes + 1).ok());
  EXPECT_FALSE(rules.CheckValue("/guard/filling", 1).ok());
  EXPECT_FALSE(rules.CheckValue("/guard/moved", 1).ok());
  EXPECT_FALSE(rules.CheckValue("/guard/revision-base", 1).ok());
  EXPECT_TRUE(rules.CheckValue("/guard/encryption", 1).ok());
  EXPECT_TRUE(rules.CheckValue("/k/2", 1).ok());
  const Status twice = rules.CheckValue("/k/2", 1);
  EXPECT_NE(twice.message().find("\"/k/2\""), std::string::npos) << twice;
  EXPECT_FALSE(rules.CheckValue("/k/1", 1).ok());
  EXPECT_TRUE(rules.CheckValue("/k/3", 1).ok());
}

}  // namespace
}  // namespace berth::app
