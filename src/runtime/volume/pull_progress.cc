// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/pull_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace berth::runtime {
namespace {

std::string ShareText(int64_t bytes, int64_t of) {
  constexpr double kMiB = 1 << 20;
  constexpr double kPercents = 100;
  const double share =
      static_cast<double>(std::clamp<int64_t>(bytes, 0, of)) / static_cast<double>(of);
  return fmt::format(
      "{} % of {:.1f} MiB", static_cast<int>(share * kPercents), static_cast<double>(of) / kMiB);
}

}  // namespace

bool PullProgress::Note(int64_t bytes, int64_t of, Time now) {
  if (of <= 0) return false;
  const bool is_whole = bytes >= of;
  // That all of it came is the last that is heard, however early: what follows is unpacking.
  const bool is_last_word = is_whole && !text_.empty();
  if (now - told_ < interval_ && !is_last_word) return false;
  return Tell(ShareText(bytes, of) + (is_whole ? ", unpacking" : ""), now);
}

bool PullProgress::NoteUnpacked(int64_t bytes, int64_t of, Time now) {
  if (of <= 0 || now - told_ < interval_) return false;
  return Tell(ShareText(bytes, of) + " unpacked", now);
}

bool PullProgress::Tell(std::string text, Time now) {
  told_ = now;
  if (text == text_) return false;
  text_ = std::move(text);
  return true;
}

}  // namespace berth::runtime
