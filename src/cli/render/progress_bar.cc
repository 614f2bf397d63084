// SPDX-License-Identifier: Apache-2.0
#include "cli/render/progress_bar.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr size_t kWidth = 20;
constexpr size_t kWhatWidth = 13;  // as the lines of `berth up` are aligned

}  // namespace

void ProgressBar::Turn(std::string_view what) {
  if (what == what_) return;
  Wipe();
  what_ = what;
}

void ProgressBar::Show(size_t done, size_t of, std::string_view text) {
  const bool is_terminal = environment_.terminal.out_is_terminal;
  const size_t filled = of == 0 ? 0 : std::min(kWidth, done * kWidth / of);
  std::string line = fmt::format("{:<{}} ", what_, kWhatWidth);
  if (is_terminal) {
    line += fmt::format("[{:<{}}] {}", std::string(filled, '#'), kWidth, Printable(text));
    line.resize(std::min(line.size(), std::max<size_t>(environment_.terminal.columns, 2) - 1));
  } else {
    line += fmt::format("{}/{} {}", done, of, Printable(text));
  }
  if (line == last_) return;
  *environment_.out << (is_terminal ? "\r\x1b[K" : "") << line << (is_terminal ? "" : "\n")
                    << std::flush;
  last_ = std::move(line);
}

void ProgressBar::End(std::string_view text) {
  Wipe();
  *environment_.out << fmt::format("{:<{}} {}\n", what_, kWhatWidth, Printable(text)) << std::flush;
}

void ProgressBar::Wipe() {
  if (environment_.terminal.out_is_terminal && !last_.empty()) {
    *environment_.out << "\r\x1b[K" << std::flush;
  }
  last_.clear();
}

}  // namespace berth::cli
