// SPDX-License-Identifier: Apache-2.0
// Never more bytes than the limit; small bodies and those that come last are not disturbed.
#include "net/body_budget.h"

#include <gtest/gtest.h>

namespace berth::net {
namespace {

constexpr size_t kLimit = 1000;
constexpr size_t kFree = BodyBudget::kFree;

TEST(BodyBudget, GivesUpTheOldestWhenThereAreTooManyBytes) {
  BodyBudget budget(kLimit);
  int given_up = 0;
  BodyBudget::Body one(budget, [&] { ++given_up; });
  BodyBudget::Body two(budget, [&] { ++given_up; });
  BodyBudget::Body three(budget, [&] { ++given_up; });
  one.Grow(kFree + 400);
  two.Grow(kFree + 100);
  three.Grow(kFree + 500);
  EXPECT_EQ(budget.bytes(), kLimit);
  EXPECT_EQ(given_up, 0);
  three.Grow(kFree + 501);
  EXPECT_EQ(given_up, 1);
  EXPECT_TRUE(one.is_given_up());
  EXPECT_EQ(budget.bytes(), 601U);
  one.Grow(kFree + 900);  // what still comes of it is nobody's loss
  EXPECT_EQ(budget.bytes(), 601U);
  EXPECT_EQ(given_up, 1);
}

TEST(BodyBudget, SmallBodiesCountNothingAndAreNeverGivenUp) {
  BodyBudget budget(kLimit);
  bool is_told = false;
  BodyBudget::Body small(budget, [&] { is_told = true; });
  small.Grow(kFree);
  EXPECT_EQ(budget.bytes(), 0U);
  BodyBudget::Body large(budget, [] {});
  large.Grow(kFree + kLimit + 1);  // larger than all may be together
  EXPECT_TRUE(large.is_given_up());
  EXPECT_FALSE(is_told || small.is_given_up());
}

TEST(BodyBudget, WhatHasEndedCountsNoMore) {
  BodyBudget budget(kLimit);
  for (int i = 0; i < 10; ++i) {
    BodyBudget::Body body(budget, [] { FAIL(); });
    body.Grow(kFree + 600);
    body.Grow(kFree + kLimit);
  }
  EXPECT_EQ(budget.bytes(), 0U);
}

}  // namespace
}  // namespace berth::net
