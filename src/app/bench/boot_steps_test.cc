// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_steps.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::app {
namespace {

WallTime At(int64_t micros) { return WallTime::FromMicros(micros); }

constexpr BootTimes kTimes = {.sent = WallTime::FromMicros(1000),
                              .acknowledged = WallTime::FromMicros(1100),
                              .bound = WallTime::FromMicros(1300),
                              .running = WallTime::FromMicros(3000),
                              .userspace = WallTime::FromMicros(9000)};

TraceSpan Moment(std::string name, int64_t at) { return {std::move(name), At(at), At(at)}; }

std::vector<TraceSpan> Trace() {
  return {Moment("poollet.running", 900),  // of the one before
          Moment("poollet.assigned", 1400),
          Moment("poollet.create", 1500),
          {"libvirt.define", At(1600), At(1700)},
          {"image.fetch", At(1750), At(1800)},
          {"qemu-img.copy", At(1800), At(2100)},
          {"libvirt.start", At(2200), At(2900)},  // whose event comes before its answer
          Moment("poollet.running", 2800),
          Moment("poollet.running", 2950)};
}

const BootStep& Named(const std::vector<BootStep>& steps, std::string_view name) {
  for (const BootStep& step : steps) {
    if (step.name == name) return step;
  }
  ADD_FAILURE() << name;
  return steps.front();
}

TEST(BootSpans, AreReadLineByLine) {
  const auto spans = ParseSpans(
      "{\"span\":\"libvirt.start\",\"begin\":10,\"end\":25}\nnonsense\n"
      "{\"span\":\"qemu-img.copy\",\"begin\":1,\"end\":4}\n{\"span\":\"cut");
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "libvirt.start");
  EXPECT_EQ(spans[0].end - spans[0].begin, Duration::Micros(15));
  EXPECT_EQ(spans[1].begin, At(1));
}

TEST(BootSpans, AreToldApartByWhoseTheyAre) {
  const auto spans = ParseSpans(
      "{\"span\":\"poollet.create\",\"of\":\"uid-1\",\"begin\":1,\"end\":1}\n"
      "{\"span\":\"libvirt.start\",\"of\":\"m-1\",\"begin\":2,\"end\":3}\n"
      "{\"span\":\"libvirt.start\",\"of\":\"m-10\",\"begin\":4,\"end\":5}\n"
      "{\"span\":\"libvirt.list\",\"begin\":6,\"end\":7}\n");
  const auto own = SpansOf(spans, {"uid-1", "m-1"});
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].name, "poollet.create");
  EXPECT_EQ(own[1].end, At(3));
  EXPECT_TRUE(SpansOf(spans, {""}).empty()) << "what is about none is of none";
}

TEST(BootSpans, CountOnceWhereTheyOverlapAndOnlyInside) {
  const std::vector<TraceSpan> spans = {{"libvirt.a", At(0), At(10)},
                                        {"libvirt.b", At(5), At(20)},
                                        {"libvirt.c", At(6), At(8)},
                                        {"qemu-img.d", At(30), At(50)}};
  EXPECT_EQ(Covered(spans, {""}, At(0), At(100)), Duration::Micros(40));
  EXPECT_EQ(Covered(spans, {"libvirt.", "qemu-img."}, At(0), At(100)), Duration::Micros(40));
  EXPECT_EQ(Covered(spans, {"libvirt."}, At(0), At(100)), Duration::Micros(20));
  EXPECT_EQ(Covered(spans, {""}, At(15), At(40)), Duration::Micros(15));
  EXPECT_EQ(Covered(spans, {""}, At(60), At(100)), Duration());
}

TEST(BootSteps, AddUpToTheWholeAndSayWhoseTimeItWas) {
  const Result<std::vector<BootStep>> steps = StepsOf(kTimes, Trace());
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  EXPECT_EQ(SumOf(*steps, &BootStep::took), kTimes.userspace - kTimes.sent);
  EXPECT_EQ(Named(*steps, "api").took, Duration::Micros(100));
  EXPECT_EQ(Named(*steps, "scheduler").took, Duration::Micros(200));
  EXPECT_EQ(Named(*steps, "gateway").took, Duration::Micros(100));
  EXPECT_EQ(Named(*steps, "poollet").took, Duration::Micros(100));
  const BootStep& runtime = Named(*steps, "runtime");
  EXPECT_EQ(runtime.took, Duration::Micros(1300));
  EXPECT_EQ(runtime.libvirt, Duration::Micros(700));
  EXPECT_EQ(runtime.qemu_img, Duration::Micros(300));
  EXPECT_EQ(runtime.image, Duration::Micros(50));
  EXPECT_EQ(runtime.own, Duration::Micros(300));
  EXPECT_EQ(Named(*steps, "report").libvirt, Duration::Micros(100));
  EXPECT_EQ(Named(*steps, "report").own, Duration::Micros(100));
  EXPECT_EQ(Named(*steps, "guest").own, Duration());
}

TEST(BootSteps, AreOrderedByWhoHeardFirst) {
  // The host heard of the binding before the client's watch, and that before the create's answer.
  BootTimes times = kTimes;
  times.acknowledged = At(1480);
  times.bound = At(1450);
  const Result<std::vector<BootStep>> steps = StepsOf(times, Trace());
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  EXPECT_EQ(Named(*steps, "api").took, Duration::Micros(400));
  EXPECT_EQ(Named(*steps, "gateway").took, Duration());
  EXPECT_EQ(SumOf(*steps, &BootStep::took), times.userspace - times.sent);
}

TEST(BootSteps, MissOrMixNoneInSilence) {
  std::vector<TraceSpan> spans = Trace();
  std::erase_if(spans, [](const TraceSpan& span) { return span.name == "poollet.create"; });
  EXPECT_TRUE(StepsOf(kTimes, spans).status().Is(Reason::kNotFound));
  spans.push_back(Moment("poollet.create", 1350));  // before it was assigned
  EXPECT_TRUE(StepsOf(kTimes, spans).status().Is(Reason::kInternal));
}

TEST(BootSteps, SayWhatAGuestWaitedForItsTurn) {
  std::vector<TraceSpan> spans = Trace();
  spans.push_back({"pace.start", At(1650), At(1780)});  // 50 of which were libvirt's
  const Result<std::vector<BootStep>> steps = StepsOf(kTimes, spans);
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  EXPECT_EQ(Named(*steps, "runtime").paced, Duration::Micros(80));
  EXPECT_EQ(Named(*steps, "runtime").own, Duration::Micros(300)) << "it is a part of that";
}

TEST(BootSteps, ThatDoNotAddUpAreAnError) {
  const std::vector<BootStep> right = *StepsOf(kTimes, Trace());
  EXPECT_EQ(CheckSum(kTimes, right), OkStatus());
  for (Duration BootStep::* part : {&BootStep::own, &BootStep::took, &BootStep::qemu_img}) {
    std::vector<BootStep> wrong = right;
    wrong[4].*part = wrong[4].*part + Duration::Micros(1);
    const Status sum = CheckSum(kTimes, wrong);
    EXPECT_TRUE(sum.Is(Reason::kInternal)) << sum;
    EXPECT_TRUE(sum.message().contains("step runtime")) << sum;
  }
  std::vector<BootStep> less = right;
  less.erase(less.begin());
  EXPECT_TRUE(CheckSum(kTimes, less).message().contains("create to running"));
  BootTimes longer = kTimes;
  longer.userspace = At(9001);
  EXPECT_TRUE(CheckSum(longer, right).message().contains("create to userspace"));
}

// Whatever overlaps whatever: nothing is counted twice or lost.
TEST(BootSteps, AddUpForAnySpans) {
  Random random(7);
  for (int run = 0; run < 500; ++run) {
    std::vector<TraceSpan> spans = {Moment("poollet.assigned", 1400),
                                    Moment("poollet.create", 1500),
                                    Moment("poollet.running", 2800)};
    for (const char* name :
         {"libvirt.a", "libvirt.b", "qemu-img.c", "qemu-img.d", "image.e", "pace.f"}) {
      const auto begin = static_cast<int64_t>(500 + random.Below(3000));
      spans.push_back({name, At(begin), At(begin + static_cast<int64_t>(random.Below(2000)))});
    }
    const Result<std::vector<BootStep>> steps = StepsOf(kTimes, spans);
    ASSERT_TRUE(steps.ok()) << steps.status().message();
    for (const BootStep& step : *steps) {
      EXPECT_EQ(step.took, step.own + step.libvirt + step.qemu_img + step.guest) << step.name;
      EXPECT_GE(step.own, step.image) << step.name;
      EXPECT_GE(step.own, step.paced) << step.name;
      EXPECT_GE(step.qemu_img, Duration()) << step.name;
    }
    EXPECT_EQ(CheckSum(kTimes, *steps), OkStatus());
  }
}

}  // namespace
}  // namespace berth::app
