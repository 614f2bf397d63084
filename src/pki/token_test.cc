// SPDX-License-Identifier: Apache-2.0
// Defends: tokens are unguessable, what is stored does not reveal them, and malformed ones are
// recognised by form.
#include "pki/token.h"

#include <gtest/gtest.h>

#include <set>

#include "pki/digest.h"

namespace berth::pki {
namespace {

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();

TEST(Token, IsStoredByItsHashOnly) {
  auto token = MakeToken(SystemEntropy(), "ann", {"dev", "ops"}, Duration::Hours(1), kNow);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->text.size(), 6U + 10 + 1 + 43);
  const std::string secret = token->text.substr(17);
  for (const auto& [key, value] : token->secret.data) {
    EXPECT_EQ(value.find(secret), std::string::npos) << key;
  }
  auto record = ParseTokenSecret(token->secret.name, token->secret.data);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, TokenId(token->text));
  EXPECT_EQ(record->hash, Sha256Hex(token->text));
  EXPECT_EQ(record->user, "ann");
  EXPECT_EQ(record->groups, (std::vector<std::string>{"dev", "ops"}));
  EXPECT_EQ(record->expires, kNow + Duration::Hours(1));
}

TEST(Token, WithoutTimeToLiveAndGroupsHasNeither) {
  auto token = MakeToken(SystemEntropy(), "ann", {}, std::nullopt, kNow);
  auto record = ParseTokenSecret(token->secret.name, token->secret.data);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->groups.empty());
  EXPECT_FALSE(record->expires.has_value());
}

TEST(Token, NoTwoAreAlike) {
  std::set<std::string> texts;
  std::set<std::string> names;
  for (int i = 0; i < 500; ++i) {
    auto token = MakeToken(SystemEntropy(), "ann", {}, std::nullopt, kNow);
    EXPECT_TRUE(texts.insert(token->text).second);
    EXPECT_TRUE(names.insert(token->secret.name).second);
  }
}

TEST(Token, RefusesSubjectsThatCouldBeReadAsSomethingElse) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> table = {
      {"", {}},
      {"a\nb", {}},
      {"a\0b", {""}},
      {"ann", {"a,system:masters"}},
      {"ann", {""}},
      {"\xff", {}}};
  for (const auto& [user, groups] : table) {
    EXPECT_FALSE(MakeToken(SystemEntropy(), user, groups, std::nullopt, kNow).ok()) << user;
  }
  EXPECT_FALSE(MakeToken(SystemEntropy(), "ann", {}, Duration(), kNow).ok());
  EXPECT_FALSE(MakeToken(SystemEntropy(), "ann", {}, Duration::Seconds(-1), kNow).ok());
}

TEST(Token, MalformedTextHasNoId) {
  const std::string secret(43, 'x');
  EXPECT_EQ(TokenId("berth_abc_" + secret), "abc");
  EXPECT_EQ(TokenId("berth_abc_" + std::string("_-") + std::string(41, 'x')), "abc");
  for (const std::string& text : {std::string(),
                                  std::string("berth_"),
                                  "berth__" + secret,
                                  "berth_abc" + secret,
                                  "berth_abc_" + secret + "x",
                                  "berth_abc_" + secret.substr(1),
                                  "Berth_abc_" + secret,
                                  "berth_aBc_" + secret,
                                  "berth_abc_" + secret.substr(1) + " ",
                                  " berth_abc_" + secret,
                                  "berth_../x_" + secret}) {
    EXPECT_EQ(TokenId(text), std::nullopt) << text;
  }
}

TEST(Token, DamagedSecretsAreRefusedByField) {
  auto token = MakeToken(SystemEntropy(), "ann", {"dev"}, Duration::Hours(1), kNow);
  struct Case {
    std::string field, value, message;
  };
  for (const Case& c : {Case{"hash", "", "data.hash"},
                        Case{"hash", std::string(64, 'G'), "data.hash"},
                        Case{"hash", "abc", "data.hash"},
                        Case{"user", "", "data: user"},
                        Case{"groups", "a\tb", "data: group"},
                        Case{"expires", "tomorrow", "data.expires"}}) {
    auto data = token->secret.data;
    data[c.field] = c.value;
    auto record = ParseTokenSecret(token->secret.name, data);
    ASSERT_FALSE(record.ok()) << c.field;
    EXPECT_TRUE(record.status().message().starts_with(c.message)) << record.status();
    EXPECT_EQ(record.status().message().find(token->secret.data["hash"]), std::string::npos);
  }
  EXPECT_FALSE(ParseTokenSecret("other", token->secret.data).ok());
  EXPECT_FALSE(ParseTokenSecret("token-", token->secret.data).ok());
}

}  // namespace
}  // namespace berth::pki
