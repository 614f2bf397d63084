// SPDX-License-Identifier: Apache-2.0
// Defends what a bench says of its figures.
#include "app/bench/figures.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

TEST(Figures, ABarStandsBesideItsFigureWithTheVerdict) {
  Figure figure{.metric = "abuse_ratio", .value = 3, .unit = "", .params = {}};
  AddBar(figure, 3);
  EXPECT_EQ(figure.params["bar"], "3");
  EXPECT_EQ(figure.params["verdict"], "within");
  figure.value = 3.01;
  AddBar(figure, 3);
  EXPECT_EQ(figure.params["verdict"], "over");
  EXPECT_EQ(
      FigureJson("abuse", figure),
      R"({"bench":"abuse","metric":"abuse_ratio","value":3.01,"unit":"","params":{"bar":"3","verdict":"over"}})");
}

}  // namespace
}  // namespace berth::app
