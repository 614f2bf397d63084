// SPDX-License-Identifier: Apache-2.0
// What a server prints is read back as it was, and a list that cannot be read whole is none: the
// line that is wrong is named.
#include "pki/revocation_list.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::pki {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1'800'000'000);

TEST(RevocationList, IsReadBackAsItWasPrinted) {
  const std::vector<Revocation> all = {
      {.kind = RevokedKind::kHost, .name = "rack1-07.example", .until = kNow},
      {.kind = RevokedKind::kHostSerial, .name = "3f09a2", .until = kNow},
      {.kind = RevokedKind::kUser, .name = "Jane_Doe", .until = std::nullopt},
      {.kind = RevokedKind::kUserHex, .name = "6a406f7267", .until = kNow},
      {.kind = RevokedKind::kUserHex, .name = std::string(2 * kRevokedUserMax, 'a'), .until = kNow},
      {.kind = RevokedKind::kUserSerial, .name = "c0ffee", .until = kNow},
  };
  std::string text = "# of Monday\n\n";
  for (const Revocation& one : all) text += FormatRevocation(one);
  const auto parsed = ParseRevocations(text, kNow + Duration::Hours(1));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, all);
  for (const Revocation& one : all) {
    EXPECT_EQ(RevocationOf(RecordOf(one.kind), EntryOf(one), ValueOf(one)), one);
  }
}

TEST(RevocationList, IsForPeopleToo) {
  const auto parsed = ParseRevocations(
      " user\tjane \r\nuser-serial C0FFEE\nhost a 2027-01-15T08:00:00.5+00:00", kNow);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 3U);
  EXPECT_EQ(FormatRevocation((*parsed)[0]), "user jane 2027-01-15T08:00:00Z\n") << "until now";
  EXPECT_EQ((*parsed)[1].name, "c0ffee");
  EXPECT_EQ(FormatRevocation((*parsed)[2]), "host a 2027-01-15T08:00:01Z\n")
      << "part of a second revokes all of it";
  EXPECT_TRUE(ParseRevocations("", kNow)->empty());
}

TEST(RevocationList, SaysWhichLineIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hots a", "line 1: unknown kind \"hots\": want host, "},
      {"host a\n\nhost", "line 3: has 1 words: want host NAME TIME"},
      {"user jane doe 2026-08-22T10:00:00Z", "line 1: has 4 words"},
      {"user j@ne", "line 1: user \"j@ne\": want 1 to 64 letters"},
      {"host " + std::string(65, 'a'), "line 1: host "},
      {"user-serial xyz", "line 1: serial \"xyz\": want 1 to 40 hexadecimal digits"},
      {"host-serial " + std::string(41, '1'), "line 1: serial "},
      {"userhex abc", "line 1: userhex \"abc\""},
      {"userhex " + std::string(2 * kRevokedUserMax + 2, 'a'), "line 1: userhex "},
      {"# x\nuser jane yesterday", "line 2: time \"yesterday\": want 2006-01-02T15:04:05Z"},
      {"user \x1b[31m", R"(line 1: user "\x1b[31m")"},
      {"host " + std::string(600, 'a'), "line 1: has 605 bytes, at most 512"},
      {std::string(kRevocationListBytesMax + 1, '\n'), "has more than 1048576 bytes"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = ParseRevocations(text, kNow);
    ASSERT_FALSE(parsed.ok()) << text.substr(0, 80);
    EXPECT_TRUE(parsed.status().message().starts_with(message)) << parsed.status();
  }
}

TEST(RevocationList, EntriesThatNobodyReadsAreLeftOut) {
  EXPECT_FALSE(RevocationOf("revoked-users", "jane", "2026-08-22T10:00:00Z").has_value());
  EXPECT_FALSE(RevocationOf("revoked-hosts", "user.jane", "2026-08-22T10:00:00Z").has_value());
  const auto typo = RevocationOf("revoked-users", "user.jane", "tomorrow");
  ASSERT_TRUE(typo.has_value());
  EXPECT_FALSE(typo->until.has_value()) << "what cannot be read revokes for good";
}

}  // namespace
}  // namespace berth::pki
