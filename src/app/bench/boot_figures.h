// SPDX-License-Identifier: Apache-2.0
// What guests took to boot, as figures: the median and the spread, and what the one in the middle
// took step by step. Pure.
#pragma once

#include <vector>

#include "app/bench/boot_steps.h"
#include "app/bench/figures.h"

namespace berth::app {

struct BootedGuest {
  BootTimes times;
  std::vector<BootStep> steps;  // of all guests the same, in the same order
};

// create_to_running_ms, create_to_userspace_ms and control_plane_ms, medians; and step_…_ms of the
// guest whose control_plane_ms is shown, which add up to the running_ms and userspace_ms of its
// params. Of ten at once the names say so: control_plane_10_ms. Each has least_ms and most_ms over
// all guests. REQUIRES: not empty.
std::vector<Figure> BootFigures(std::vector<BootedGuest> guests, int at_once);

}  // namespace berth::app
