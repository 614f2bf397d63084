// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_bench.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

WallTime At(int64_t micros) { return WallTime::FromMicros(micros); }

TEST(BootSpans, AreReadLineByLine) {
  const auto spans = ParseSpans(
      "{\"span\":\"libvirt.start\",\"begin\":10,\"end\":25}\nnonsense\n"
      "{\"span\":\"qemu-img.copy\",\"begin\":1,\"end\":4}\n{\"span\":\"cut");
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "libvirt.start");
  EXPECT_EQ(spans[0].end - spans[0].begin, Duration::Micros(15));
  EXPECT_EQ(spans[1].begin, At(1));
}

TEST(BootSpans, CountOnceWhereTheyOverlapAndOnlyInside) {
  const std::vector<ForeignSpan> spans = {{"libvirt.a", At(0), At(10)},
                                          {"libvirt.b", At(5), At(20)},
                                          {"libvirt.c", At(6), At(8)},
                                          {"qemu-img.d", At(30), At(50)}};
  EXPECT_EQ(Covered(spans, "", At(0), At(100)), Duration::Micros(40));
  EXPECT_EQ(Covered(spans, "libvirt.", At(0), At(100)), Duration::Micros(20));
  EXPECT_EQ(Covered(spans, "", At(15), At(40)), Duration::Micros(15));
  EXPECT_EQ(Covered(spans, "", At(60), At(100)), Duration());
}

}  // namespace
}  // namespace berth::app
