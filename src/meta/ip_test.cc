// SPDX-License-Identifier: Apache-2.0
// Defends the text forms of addresses and prefixes, and which of them lie inside which.
#include "meta/ip.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::meta {
namespace {

TEST(IpAddress, IsWrittenAsGoWritesIt) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"10.0.0.1", "10.0.0.1"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
      {"0:0:1::", "0:0:1::"},
      {"::ffff:10.1.2.3", "::ffff:10.1.2.3"},
      {"64:ff9b::10.1.2.3", "64:ff9b::a01:203"},
  };
  for (const auto& [text, written] : kKnown) {
    const auto parsed = IpAddress::Parse(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->ToString(), written) << text;
  }
}

TEST(IpAddress, RefusesWhatIsNoAddress) {
  for (const std::string_view text : {"",
                                      "1",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "01.2.3.4",
                                      "256.1.1.1",
                                      "1.2.3.",
                                      "1.2.3.4 ",
                                      "-1.2.3.4",
                                      "+1.2.3.4",
                                      ":",
                                      ":::",
                                      "1::2::3",
                                      "1:2:3:4:5:6:7",
                                      "1:2:3:4:5:6:7:8:9",
                                      "12345::",
                                      "g::",
                                      "fe80::1%eth0",
                                      "1:2:3:4:5:6:7:1.2.3.4",
                                      "1.2.3.4::",
                                      ":1:2:3:4:5:6:7",
                                      "1:2:3:4:5:6:7::8"}) {
    EXPECT_FALSE(IpAddress::Parse(text).has_value()) << text;
  }
}

TEST(IpAddress, RandomAddressesSurviveWritingAndReading) {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    std::array<uint8_t, 16> bytes{};
    for (auto& byte : bytes) byte = random.Chance(0.5) ? 0 : static_cast<uint8_t>(random.Next());
    const auto address = IpAddress::V6(bytes);
    ASSERT_EQ(IpAddress::Parse(address.ToString()), address) << address.ToString();
  }
}

TEST(IpAddress, TheLastOneHasNoNext) {
  EXPECT_EQ(IpAddress::Parse("10.0.0.255")->Next().ToString(), "10.0.1.0");
  EXPECT_TRUE(IpAddress::Parse("255.255.255.255")->Next().is_null());
  EXPECT_EQ(IpAddress::Parse("::ffff")->Next().ToString(), "::1:0");
  EXPECT_TRUE(IpAddress().Next().is_null());
}

TEST(IpPrefix, KnowsWhatItContains) {
  const auto net = *IpPrefix::Parse("10.0.4.7/22");
  EXPECT_EQ(net.ToString(), "10.0.4.7/22");
  EXPECT_EQ(net.Masked().ToString(), "10.0.4.0/22");
  EXPECT_TRUE(net.Contains(*IpAddress::Parse("10.0.7.255")));
  EXPECT_FALSE(net.Contains(*IpAddress::Parse("10.0.8.0")));
  EXPECT_FALSE(net.Contains(*IpAddress::Parse("::1")));
  EXPECT_TRUE(net.Contains(*IpPrefix::Parse("10.0.5.0/24")));
  EXPECT_FALSE(net.Contains(*IpPrefix::Parse("10.0.0.0/16")));
  EXPECT_TRUE(net.Overlaps(*IpPrefix::Parse("10.0.0.0/16")));
  EXPECT_FALSE(net.Overlaps(*IpPrefix::Parse("10.1.0.0/16")));
  EXPECT_TRUE(IpPrefix::Parse("::/0")->Contains(*IpAddress::Parse("ff::")));
  EXPECT_TRUE(IpPrefix::Parse("10.0.0.1/32")->is_single_ip());
  EXPECT_FALSE(net.is_single_ip());
}

TEST(IpPrefix, NullContainsNothing) {
  const IpPrefix null;
  EXPECT_TRUE(null.is_null());
  EXPECT_EQ(null.ToString(), "");
  EXPECT_FALSE(null.Contains(IpAddress()));
  EXPECT_FALSE(null.Overlaps(*IpPrefix::Parse("0.0.0.0/0")));
  EXPECT_FALSE(null.is_single_ip());
}

TEST(IpPrefix, RefusesLengthsThatDoNotFit) {
  for (const std::string_view text : {"10.0.0.0",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "::/129",
                                      "10.0.0.0/08",
                                      "10.0.0.0/-1",
                                      "/8",
                                      "10.0.0.0/8/8",
                                      "10.0.0.0/4294967304"}) {
    EXPECT_FALSE(IpPrefix::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace berth::meta
