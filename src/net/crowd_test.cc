// SPDX-License-Identifier: Apache-2.0
// Defends: who makes way is the oldest of the address that takes most, never one who may not go.
#include "net/crowd.h"

#include <gtest/gtest.h>

namespace berth::net {
namespace {

struct Peer {
  char name = ' ';
  bool may_go = true;
};

bool MayGo(const Peer& peer) { return peer.may_go; }

class CrowdTest : public testing::Test {
 protected:
  char Most() const {
    const Peer* peer = crowd_.OldestOfMost(MayGo);
    return peer == nullptr ? '-' : peer->name;
  }
  char Of(const std::string& address) const {
    const Peer* peer = crowd_.OldestOf(address, MayGo);
    return peer == nullptr ? '-' : peer->name;
  }

  Crowd<Peer> crowd_;
  Peer a_{.name = 'a'};
  Peer b_{.name = 'b'};
  Peer c_{.name = 'c'};
  Peer d_{.name = 'd'};
};

TEST_F(CrowdTest, WhoeverHasMostPlacesGivesTheOldestOfThem) {
  const auto alone = crowd_.Add("192.0.2.1", a_);
  const auto first = crowd_.Add("192.0.2.9", b_);
  auto second = crowd_.Add("192.0.2.9", c_);
  EXPECT_EQ(Most(), 'b');
  EXPECT_EQ(crowd_.size(), 3U);
  second.reset();
  EXPECT_EQ(crowd_.CountOf("192.0.2.9"), 1U);
  EXPECT_EQ(Most(), 'a') << "of equals the oldest";
}

TEST_F(CrowdTest, WhoMayNotGoStays) {
  const auto alone = crowd_.Add("192.0.2.1", a_);
  const auto first = crowd_.Add("192.0.2.9", b_);
  const auto second = crowd_.Add("192.0.2.9", c_);
  b_.may_go = false;
  EXPECT_EQ(Most(), 'c');
  EXPECT_EQ(Of("192.0.2.9"), 'c');
  c_.may_go = false;
  EXPECT_EQ(Most(), 'a');
  EXPECT_EQ(Of("192.0.2.9"), '-');
  a_.may_go = false;
  EXPECT_EQ(Most(), '-');
}

TEST_F(CrowdTest, AnAddressThatHasNobodyCountsNothing) {
  EXPECT_EQ(crowd_.CountOf("192.0.2.1"), 0U);
  EXPECT_EQ(Of("192.0.2.1"), '-');
  crowd_.Add("192.0.2.1", d_).reset();
  EXPECT_EQ(crowd_.CountOf("192.0.2.1"), 0U);
  EXPECT_EQ(crowd_.size(), 0U);
}

}  // namespace
}  // namespace berth::net
