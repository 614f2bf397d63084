// SPDX-License-Identifier: Apache-2.0
// Defends that text from outside is cut, compared and shown exactly, and never reaches a terminal
// raw.
#include "base/strings.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Strings, SplitAndJoinAreInverse) {
  EXPECT_EQ(Split("", ','), Parts({""}));
  EXPECT_EQ(Split("a", ','), Parts({"a"}));
  EXPECT_EQ(Split("a,,b,", ','), Parts({"a", "", "b", ""}));
  EXPECT_EQ(Join({"a", "", "b", ""}, ","), "a,,b,");
  EXPECT_EQ(Join({}, ","), "");
}

TEST(Strings, TrimTakesSpaceFromBothEnds) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \n"), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Strings, CaseIsIgnoredInAsciiOnly) {
  EXPECT_EQ(ToLower("OpenKCM.Dev"), "openkcm.dev");
  EXPECT_TRUE(EqualsIgnoreCase("OpenKCM", "openkcm"));
  EXPECT_FALSE(EqualsIgnoreCase("a", "ab"));
  EXPECT_FALSE(EqualsIgnoreCase("\xc3\x84", "\xc3\xa4"));
}

TEST(Strings, NothingReachesATerminalRaw) {
  const struct {
    std::string_view text;
    std::string_view printable;
  } cases[] = {
      {"plain \xc3\xa4\xe2\x82\xac", "plain \xc3\xa4\xe2\x82\xac"},
      {"a\nb\tc\r", "a\\nb\\tc\\r"},
      {"\x1b[31m", "\\x1b[31m"},
      {"\x7f", "\\x7f"},
      {std::string_view("\0", 1), "\\x00"},
      {"\xc2\x9b", "\\xc2\\x9b"},                    // CSI as one C1 control
      {"\xff", "\\xff"},                             // not UTF-8
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond U+10FFFF
      {"\xe2\x82", "\\xe2\\x82"},                    // cut off
  };
  for (const auto& c : cases) EXPECT_EQ(Printable(c.text), c.printable);
  EXPECT_EQ(Quote("say \"hi\"\\\n"), "\"say \\\"hi\\\"\\\\\\n\"");
}

TEST(Strings, Utf8IsValidOrNot) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* bad : {"\x80", "\xc1\x81", "\xe0\x80\x80", "\xf5\x80\x80\x80", "a\xc3"})
    EXPECT_FALSE(IsValidUtf8(bad));
}

TEST(Strings, NumbersAreWholeOrRefused) {
  EXPECT_EQ(ParseInt("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(ParseUint("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", " 1", "1 ", "+1", "1.0", "0x1", "9223372036854775808", "-"})
    EXPECT_FALSE(ParseInt(bad).has_value()) << bad;
  EXPECT_FALSE(ParseUint("-1").has_value());
}

TEST(Base64, HasTheTextsOfTheStandard) {
  const struct {
    const char* bytes;
    const char* text;
  } cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& c : cases) {
    EXPECT_EQ(Base64Encode(c.bytes), c.text);
    EXPECT_EQ(Base64Decode(c.text), c.bytes);
  }
}

TEST(Base64, AnyBytesComeBack) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (uint64_t n = random.Below(40); n > 0; --n) bytes += static_cast<char>(random.Below(256));
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)), bytes);
  }
}

TEST(Base64, OnlyTheCanonicalFormIsRead) {
  for (const char* bad :
       {"Zg", "Zg=", "Zh==", "Zm9=", "Z===", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_"})
    EXPECT_FALSE(Base64Decode(bad).has_value()) << bad;
}

TEST(Strings, HexIsLowerCase) { EXPECT_EQ(HexEncode(std::string_view("\0\xff\x1a", 3)), "00ff1a"); }

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> commands = {"get", "describe", "delete", "apply"};
  EXPECT_EQ(Nearest("gte", commands), "get");
  EXPECT_EQ(Nearest("descrbe", commands), "describe");
  EXPECT_EQ(Nearest("aply", commands), "apply");
  EXPECT_EQ(Nearest("frobnicate", commands), std::nullopt);
  EXPECT_EQ(Nearest("x", {}), std::nullopt);
}

TEST(EditDistance, IsAMetric) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  Random random(4);
  const auto word = [&] {
    std::string text;
    for (uint64_t n = random.Below(6); n > 0; --n) text += static_cast<char>('a' + random.Below(3));
    return text;
  };
  for (int i = 0; i < 500; ++i) {
    const std::string a = word();
    const std::string b = word();
    const std::string c = word();
    EXPECT_EQ(EditDistance(a, b), EditDistance(b, a));
    EXPECT_EQ(EditDistance(a, b) == 0, a == b);
    EXPECT_LE(EditDistance(a, c), EditDistance(a, b) + EditDistance(b, c));
  }
}

}  // namespace
}  // namespace berth
