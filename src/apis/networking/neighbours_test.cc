// SPDX-License-Identifier: Apache-2.0
// Defends: what a guest is told of its wire, and which addresses are of no use there.
#include "apis/networking/neighbours.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::apis::networking {
namespace {

meta::IpAddress Address(const std::string& text) { return *meta::IpAddress::Parse(text); }

TEST(Neighbours, AreThoseOfThePrivateRangeOrOfTwentyFourBits) {
  EXPECT_EQ(UsualPrefixLength(Address("10.1.2.3")), 8);
  EXPECT_EQ(UsualPrefixLength(Address("172.20.0.1")), 12);
  EXPECT_EQ(UsualPrefixLength(Address("192.168.7.7")), 16);
  EXPECT_EQ(UsualPrefixLength(Address("100.100.0.1")), 10);
  EXPECT_EQ(UsualPrefixLength(Address("203.0.113.9")), 24);
}

TEST(Neighbours, AreThoseThatTheAttributeSays) {
  EXPECT_EQ(*ParsePrefixLength("1"), 1);
  EXPECT_EQ(*ParsePrefixLength("24"), 24);
  EXPECT_EQ(*ParsePrefixLength("32"), 32);
  for (const char* const bad : {"", "0", "33", "-1", "x", "24 "}) {
    const auto length = ParsePrefixLength(bad);
    EXPECT_EQ(length.status().reason(), Reason::kBadRequest) << bad;
  }
}

TEST(Neighbours, FirstAndLastAreTheWiresOwn) {
  for (const char* const text : {"203.0.113.0", "203.0.113.255"}) {
    EXPECT_TRUE(IsOfTheWire(Address(text), 24)) << text;
    EXPECT_FALSE(IsOfTheWire(Address(text), 16)) << text;
  }
  for (const char* const text : {"203.0.113.1", "203.0.113.254", "203.0.113.128"}) {
    EXPECT_FALSE(IsOfTheWire(Address(text), 24)) << text;
  }
  EXPECT_TRUE(IsOfTheWire(Address("10.0.0.0"), 8));
  EXPECT_TRUE(IsOfTheWire(Address("10.255.255.255"), 8));
  EXPECT_FALSE(IsOfTheWire(Address("10.20.0.0"), 8)) << "one of many on a large wire";
  EXPECT_TRUE(IsOfTheWire(Address("0.0.0.0"), 1));
  EXPECT_TRUE(IsOfTheWire(Address("127.255.255.255"), 1));
  EXPECT_TRUE(IsOfTheWire(Address("10.0.0.3"), 30));
}

TEST(Neighbours, TwoOrOneOnAWireAreAllGuests) {
  for (const int length : {31, 32}) {
    EXPECT_FALSE(IsOfTheWire(Address("203.0.113.0"), length)) << length;
    EXPECT_FALSE(IsOfTheWire(Address("203.0.113.255"), length)) << length;
  }
  EXPECT_FALSE(IsOfTheWire(Address("2001:db8::"), 24));
}

}  // namespace
}  // namespace berth::apis::networking
