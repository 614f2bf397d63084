// SPDX-License-Identifier: Apache-2.0
// Defends: what is shown of many guests is what they took, and adds up for the one in the middle.
#include "app/bench/boot_figures.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::app {
namespace {

constexpr int64_t kMilli = 1000;  // microseconds

WallTime At(int64_t micros) { return WallTime::FromMicros(micros); }

// A guest that waits so long for its turn and boots so long; everything else takes 30 ms, 10 ms of
// which are libvirt's.
BootedGuest Guest(int64_t paced_ms, int64_t boots_ms) {
  constexpr int64_t kBegin = 5 * kMilli;
  const int64_t started = kBegin + paced_ms * kMilli;
  BootedGuest guest;
  guest.times = {.sent = At(0),
                 .acknowledged = At(kMilli),
                 .bound = At(2 * kMilli),
                 .running = At(started + 25 * kMilli),
                 .userspace = At(started + (25 + boots_ms) * kMilli)};
  const std::vector<TraceSpan> spans = {
      {"poollet.assigned", At(3 * kMilli), At(3 * kMilli)},
      {"poollet.create", At(4 * kMilli), At(4 * kMilli)},
      {"pace.start", At(kBegin), At(started)},
      {"libvirt.start", At(started), At(started + 10 * kMilli)},
      {"poollet.running", At(started + 20 * kMilli), At(started + 20 * kMilli)}};
  const Result<std::vector<BootStep>> steps = StepsOf(guest.times, spans);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  guest.steps = *steps;
  EXPECT_EQ(CheckSum(guest.times, guest.steps), OkStatus());
  return guest;
}

const Figure& Named(const std::vector<Figure>& figures, std::string_view metric) {
  for (const Figure& figure : figures) {
    if (figure.metric == metric) return figure;
  }
  ADD_FAILURE() << metric;
  return figures.front();
}

double SumOfSteps(const std::vector<Figure>& figures) {
  double sum = 0;
  for (const Figure& figure : figures) sum += figure.metric.starts_with("step_") ? figure.value : 0;
  return sum;
}

TEST(BootFigures, OfManyAreMediansWithTheirSpread) {
  const std::vector<Figure> figures =
      BootFigures({Guest(400, 100), Guest(0, 300), Guest(100, 200)}, 3);
  const Figure& running = Named(figures, "create_to_running_3_ms");
  EXPECT_DOUBLE_EQ(running.value, 130);
  EXPECT_EQ(running.params.at("least_ms"), "30.0");
  EXPECT_EQ(running.params.at("most_ms"), "430.0");
  EXPECT_EQ(running.params.at("guests"), "3");
  EXPECT_FALSE(running.params.contains("rounds"));
  EXPECT_DOUBLE_EQ(Named(figures, "create_to_userspace_3_ms").value, 330);
  const Figure& own = Named(figures, "control_plane_3_ms");
  EXPECT_DOUBLE_EQ(own.value, 120) << "all but libvirt's part";
  EXPECT_EQ(own.params.at("paced_ms"), "100.0");
  EXPECT_EQ(own.params.at("libvirt_ms"), "10.0");
  EXPECT_EQ(own.params.at("least_ms"), "20.0");
  EXPECT_EQ(own.params.at("most_ms"), "420.0");
}

TEST(BootFigures, StepsAreThoseOfTheGuestWhoseControlPlaneIsShown) {
  const std::vector<Figure> figures =
      BootFigures({Guest(400, 100), Guest(0, 300), Guest(100, 250)}, 3);
  const Figure& own = Named(figures, "control_plane_3_ms");
  EXPECT_EQ(own.params.at("running_ms"), "130.0");
  EXPECT_EQ(own.params.at("userspace_ms"), "380.0");
  EXPECT_DOUBLE_EQ(SumOfSteps(figures), 380);
  const Figure& runtime = Named(figures, "step_runtime_3_ms");
  EXPECT_EQ(runtime.params.at("paced_ms"), "100.0");
  EXPECT_EQ(runtime.params.at("libvirt_ms"), "10.0");
  EXPECT_EQ(runtime.params.at("most_ms"), "421.0");
}

TEST(BootFigures, OfOneGuestAtATimeSayHowManyRoundsTheyAreOf) {
  const std::vector<Figure> figures = BootFigures({Guest(0, 100)}, 1);
  EXPECT_DOUBLE_EQ(Named(figures, "create_to_running_ms").value, 30);
  EXPECT_DOUBLE_EQ(Named(figures, "control_plane_ms").value, 20);
  EXPECT_EQ(Named(figures, "control_plane_ms").params.at("rounds"), "1");
  EXPECT_FALSE(Named(figures, "control_plane_ms").params.contains("paced_ms"));
  EXPECT_DOUBLE_EQ(SumOfSteps(figures), 130);
}

}  // namespace
}  // namespace berth::app
