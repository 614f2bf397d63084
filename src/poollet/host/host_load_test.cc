// SPDX-License-Identifier: Apache-2.0
// Defends: a host with several runtimes has one record, which has what each of them measures.
#include "poollet/host/host_load.h"

#include <gtest/gtest.h>

namespace berth::poollet {
namespace {

TEST(HostLoad, OneRuntimeDoesNotHideWhatAnotherMeasures) {
  std::vector<fleet::Statistics> all;
  AddHostLoad({{"memory", 5000}}, 0.25, all);
  all.push_back({.uid = "m1", .memory_bytes = 5000});
  AddHostLoad({{"storage", 700}}, 0, all);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].uid, "");
  EXPECT_EQ(all[0].cpu_cores, 0.25);
  EXPECT_EQ(all[0].load, 0.25);
  EXPECT_EQ(all[0].memory_bytes, 5000);
  EXPECT_EQ(all[0].disk_bytes, 700);
}

TEST(HostLoad, WhatIsMeasuredOfTheWholeHostIsMoreThanItsInstances) {
  std::vector<fleet::Statistics> all;
  AddHostLoad({{"cpu", 1500}}, 0.25, all);
  EXPECT_EQ(all.front().cpu_cores, 1.5);
}

}  // namespace
}  // namespace berth::poollet
