// SPDX-License-Identifier: Apache-2.0
// Nothing that a host writes passes uncut.
#include "gateway/rules/words.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "gateway/rules/limits.h"

namespace berth::gateway {
namespace {

TEST(Words, TextsAreShortAndWithoutControlCharacters) {
  const std::string clean = CleanText("a\x1b[31mb\r\n\t\x07" + std::string(5000, 'x'), 100);
  EXPECT_LE(clean.size(), 100);
  for (const char c : clean) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_TRUE(IsValidUtf8(CleanText("\xff\xfe\xc3\x28", 100)));
  EXPECT_TRUE(IsValidUtf8(CleanText("ä" + std::string(98, 'x') + "ä", 100)));
}

TEST(Words, AmountsAreNamedNotNegativeAndFew) {
  ProtoAmounts amounts;
  amounts["cpu"] = 1000;
  amounts["memory"] = -5;
  amounts["no good\n"] = 1;
  amounts[""] = 1;
  EXPECT_EQ(FromProto(amounts), (fleet::Vector{{"cpu", 1000}}));
  for (int i = 0; i < 1000; ++i) amounts["r" + std::to_string(i)] = 1;
  EXPECT_EQ(FromProto(amounts).size(), kDimensionsMax);
}

TEST(Words, R5_5_CapacityIsCappedByTheLimits) {
  agent::Facts facts;
  (*facts.mutable_capacity())["cpu"] = 10'000;
  (*facts.mutable_capacity())["memory"] = 10;
  const fleet::PoolFacts out = FromProto("p", facts, {{"cpu", 4000}});
  EXPECT_EQ(out.capacity, (fleet::Vector{{"cpu", 4000}, {"memory", 10}}));
}

TEST(Words, AnOfferIsSaidWhole) {
  fleet::Offer offer;
  offer.id = {.term = 3, .number = 4};
  offer.item = {.pool_uid = "p",
                .kind = fleet::ObjectKind::kMachine,
                .uid = "u",
                .placement = 2,
                .class_name = "small",
                .resources = {{"cpu", 1}}};
  offer.joint.push_back({.pool_uid = "vp", .kind = fleet::ObjectKind::kVolume, .uid = "v"});
  offer.hold_ttl = Duration::Seconds(10);
  const agent::Offer out = ToProto(offer);
  EXPECT_EQ(out.id().term(), 3);
  EXPECT_EQ(out.id().number(), 4);
  EXPECT_EQ(out.kind(), "Machine");
  EXPECT_EQ(out.placement(), 2);
  EXPECT_EQ(out.resources().at("cpu"), 1);
  EXPECT_EQ(out.joint(0).kind(), "Volume");
  EXPECT_EQ(out.hold_ms(), 10'000);
}

TEST(Words, AVerdictThatIsNotKnownIsANo) {
  agent::Answer answer;
  EXPECT_EQ(FromProto(answer).verdict, fleet::Answer::Verdict::kRejected);
  answer.set_verdict(agent::Answer::ACCEPTED);
  EXPECT_EQ(FromProto(answer).verdict, fleet::Answer::Verdict::kAccepted);
}

}  // namespace
}  // namespace berth::gateway
