// SPDX-License-Identifier: Apache-2.0
// A ProgressBar shows how far something is: on a terminal one line that changes, elsewhere a line
// for each thing that is said.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/environment.h"

namespace berth::cli {

class ProgressBar {
 public:
  // `what` stands in front: "host". The environment outlives it.
  ProgressBar(Environment& environment, std::string what)
      : environment_(environment), what_(std::move(what)) {}
  // A bar that is not ended is wiped out.
  ~ProgressBar() { Wipe(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // What it is about from now on.
  void Turn(std::string_view what);
  // Elsewhere than on a terminal the same words are said once.
  void Show(size_t done, size_t of, std::string_view text);
  // The last word, which stays.
  void End(std::string_view text);
  // Takes it from the terminal.
  void Wipe();

 private:
  Environment& environment_;
  std::string what_;
  std::string last_;
};

}  // namespace berth::cli
