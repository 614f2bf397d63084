// SPDX-License-Identifier: Apache-2.0
// How far a machine is that somebody waits for: its image, and the steps of its boot. On a terminal
// a bar that changes. Elsewhere lines on stderr: one for each tenth of an image that takes its
// time, and, if they are asked for, one for each step.
//
//   placed -> image -> disks -> started -> console
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/environment.h"
#include "cli/render/progress_bar.h"
#include "meta/value.h"

namespace berth::cli {

class StartProgress {
 public:
  enum class Lines : uint8_t { kImage, kSteps };
  // The environment outlives it. `label` is the machine's.
  StartProgress(Environment& environment, std::string label, Lines lines = Lines::kImage)
      : environment_(environment), label_(std::move(label)), lines_(lines) {}

  // The machine as it is now.
  void Show(const meta::Value& machine);
  // Takes the bar from the terminal.
  void End() { bar_.reset(); }

 private:
  void ShowBar(const std::string& what, size_t done, size_t of, const std::string& text);
  void ShowImage(const std::string& pull);
  void ShowStep(size_t done, const std::string& text);

  Environment& environment_;
  const std::string label_;
  const Lines lines_;
  std::optional<ProgressBar> bar_;
  std::string told_;      // the last step, on a line
  int64_t tenths_ = -1;   // of the image that were told
  bool unpacks_ = false;  // those are of what is unpacked
};

}  // namespace berth::cli
