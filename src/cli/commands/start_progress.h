// SPDX-License-Identifier: Apache-2.0
// How far a machine is that somebody waits for: its image, then its boot. On a terminal a bar that
// changes; elsewhere a line on stderr for each tenth of an image that takes its time.
#pragma once

#include <optional>
#include <string>

#include "cli/environment.h"
#include "cli/render/progress_bar.h"
#include "meta/value.h"

namespace berth::cli {

class StartProgress {
 public:
  // The environment outlives it. `label` is the machine's.
  StartProgress(Environment& environment, std::string label)
      : environment_(environment), label_(std::move(label)) {}

  // The machine as it is now.
  void Show(const meta::Value& machine);
  // Takes the bar from the terminal.
  void End() { bar_.reset(); }

 private:
  void ShowBar(const std::string& what, size_t done, size_t of, const std::string& text);

  Environment& environment_;
  const std::string label_;
  std::optional<ProgressBar> bar_;
  std::string shown_;    // what the bar is about
  int64_t tenths_ = -1;  // that were told
};

}  // namespace berth::cli
