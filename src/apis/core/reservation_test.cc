// SPDX-License-Identifier: Apache-2.0
// Defends the rules and the columns of Reservation.
#include "apis/core/reservation.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::core {
namespace {

using testing::CellOf;
using testing::Parse;

Reservation Valid() {
  return Parse<Reservation>(R"({
    "metadata": {"name": "r", "namespace": "ns"},
    "spec": {"pools": ["alpha", "beta"], "resources": {"cpu": "4", "memory": "8Gi"},
             "selector": {"zone": "a"}, "mode": "One", "ttl": "1h", "count": 2}})");
}

TEST(Reservation, R8_6_HasRules) {
  testing::ExpectRules<Reservation>(
      Valid(),
      {
          {"neither resources nor class",
           [](auto& r) { r.spec.resources.clear(); },
           {"Required spec"}},
          {"both",
           [](auto& r) { r.spec.class_ref = LocalObjectReference{"large"}; },
           {"Forbidden spec"}},
          {"a class alone",
           [](auto& r) {
             r.spec.resources.clear();
             r.spec.class_ref = LocalObjectReference{"large"};
           },
           {}},
          {"nothing of a resource",
           [](auto& r) { r.spec.resources["cpu"] = meta::Quantity(0); },
           {"Invalid spec.resources[cpu]"}},
          {"a pool twice",
           [](auto& r) { r.spec.pools = {"alpha", "alpha"}; },
           {"Duplicate spec.pools[1]"}},
          {"no name of a pool", [](auto& r) { r.spec.pools = {"A b"}; }, {"Invalid spec.pools[0]"}},
          {"unknown mode", [](auto& r) { r.spec.mode = "Some"; }, {"NotSupported spec.mode"}},
          {"no machines", [](auto& r) { r.spec.count = 0; }, {"Invalid spec.count"}},
          {"too many machines", [](auto& r) { r.spec.count = 257; }, {"Invalid spec.count"}},
          {"no duration", [](auto& r) { r.spec.ttl = "soon"; }, {"Invalid spec.ttl"}},
          {"no time at all", [](auto& r) { r.spec.ttl = "0s"; }, {"Invalid spec.ttl"}},
          {"for ever", [](auto& r) { r.spec.ttl = ""; }, {}},
          {"all pools, and one",
           [](auto& r) {
             r.spec.mode = "All";
             r.spec.machine_pool_ref = LocalObjectReference{"alpha"};
           },
           {"Forbidden spec.machinePoolRef"}},
          {"all pools, and no room for names of parts",
           [](auto& r) {
             r.spec.mode = "All";
             r.metadata.name = std::string(64, 'a');
           },
           {"TooLong metadata.name"}},
      });
}

TEST(Reservation, R8_6_WhatIsReservedCannotChange) {
  testing::ExpectUpdateRules<Reservation>(
      Valid(),
      {
          {"resources",
           [](auto& r) { r.spec.resources["cpu"] = meta::Quantity(8); },
           {"Forbidden spec.resources"}},
          {"mode", [](auto& r) { r.spec.mode = "All"; }, {"Forbidden spec.mode"}},
          {"count", [](auto& r) { r.spec.count = 3; }, {"Forbidden spec.count"}},
          {"ttl", [](auto& r) { r.spec.ttl = "2h"; }, {}},
          {"pools", [](auto& r) { r.spec.pools = {"gamma"}; }, {}},
      });
}

TEST(Reservation, R8_6_ShowsStatePoolAndWhatIsLeft) {
  Reservation r = Valid();
  EXPECT_EQ(CellOf(kReservationKind, "Pool", &r), "<none>");
  EXPECT_EQ(CellOf(kReservationKind, "Left", &r), "2");
  r.status.state = kReservationAccepted;
  r.status.pools = {{.name = "alpha", .state = "Accepted"}, {.name = "beta", .state = "Rejected"}};
  r.status.consumers = {{.name = "m", .uid = "u"}};
  EXPECT_EQ(CellOf(kReservationKind, "State", &r), "Accepted");
  EXPECT_EQ(CellOf(kReservationKind, "Pool", &r), "alpha");
  EXPECT_EQ(CellOf(kReservationKind, "Count", &r), "2");
  EXPECT_EQ(CellOf(kReservationKind, "Left", &r), "1");
}

TEST(Reservation, R8_6_IsNamedByItselfAndAsAPart) {
  Reservation r = Valid();
  EXPECT_TRUE(IsNamedBy(r, "r"));
  EXPECT_FALSE(IsNamedBy(r, "whole"));
  r.metadata.labels[std::string(kReservationOfLabel)] = "whole";
  EXPECT_TRUE(IsNamedBy(r, "whole"));
}

TEST(Reservation, R8_6_ThePoolsThatItNamesHaveRejectedIt) {
  Reservation r = Valid();
  BecomeRejected(r);
  EXPECT_EQ(r.status.state, "Rejected");
  ASSERT_EQ(r.status.pools.size(), 2U);
  EXPECT_EQ(r.status.pools[1], (ReservationPool{.name = "beta", .state = "Rejected"}));
  r.status.state = kReservationLost;
  BecomeRejected(r);
  EXPECT_EQ(r.status.state, "Lost");
}

}  // namespace
}  // namespace berth::apis::core
