// SPDX-License-Identifier: Apache-2.0
#include "cli/render/line_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr size_t kContext = 3;
// Of the table that finds the longest common part: 16 MiB.
constexpr size_t kCellsMax = 4U << 20;

using Lines = std::span<const std::string_view>;

struct Edit {
  char sign;  // ' ', '-' or '+'
  std::string_view line;
};

std::vector<std::string_view> LinesOf(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text.empty() ? std::vector<std::string_view>() : Split(text, '\n');
}

void AddAll(std::vector<Edit>& edits, char sign, Lines lines) {
  for (const std::string_view line : lines) edits.push_back({.sign = sign, .line = line});
}

// What is between the common beginning and the common end.
void AddMiddle(std::vector<Edit>& edits, Lines before, Lines after) {
  const size_t width = after.size() + 1;
  if ((before.size() + 1) * width > kCellsMax) {
    AddAll(edits, '-', before);
    AddAll(edits, '+', after);
    return;
  }
  // common[i * width + j]: how many lines before[i..] and after[j..] share in order.
  std::vector<uint32_t> common((before.size() + 1) * width, 0);
  for (size_t i = before.size(); i-- > 0;) {
    for (size_t j = after.size(); j-- > 0;) {
      common[(i * width) + j] = before[i] == after[j] ? common[((i + 1) * width) + j + 1] + 1
                                                      : std::max(common[((i + 1) * width) + j],
                                                                 common[(i * width) + j + 1]);
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < before.size() && j < after.size()) {
    if (before[i] == after[j]) {
      edits.push_back({.sign = ' ', .line = before[i]});
      ++i;
      ++j;
    } else if (common[((i + 1) * width) + j] >= common[(i * width) + j + 1]) {
      edits.push_back({.sign = '-', .line = before[i++]});
    } else {
      edits.push_back({.sign = '+', .line = after[j++]});
    }
  }
  AddAll(edits, '-', before.subspan(i));
  AddAll(edits, '+', after.subspan(j));
}

std::vector<Edit> EditsBetween(Lines before, Lines after) {
  const auto [before_middle, after_middle] = std::ranges::mismatch(before, after);
  const auto head = static_cast<size_t>(before_middle - before.begin());
  const size_t shorter = std::min(before.size(), after.size()) - head;
  size_t tail = 0;
  while (tail < shorter && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Edit> edits;
  AddAll(edits, ' ', before.first(head));
  AddMiddle(edits,
            before.subspan(head, before.size() - head - tail),
            after.subspan(head, after.size() - head - tail));
  AddAll(edits, ' ', before.last(tail));
  return edits;
}

// "4,2": from which line, and how many. An empty range is counted from the line before it.
std::string RangeText(size_t from, size_t count) {
  return fmt::format("{},{}", count == 0 ? from : from + 1, count);
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> old_lines = LinesOf(before);
  const std::vector<std::string_view> new_lines = LinesOf(after);
  const std::vector<Edit> edits = EditsBetween(old_lines, new_lines);
  const auto differs = [&edits](size_t i) { return edits[i].sign != ' '; };

  std::string out;
  size_t old_at = 0;  // lines of the old and the new text that stand before edits[at]
  size_t new_at = 0;
  size_t at = 0;
  const auto pass = [&](size_t end) {
    for (; at < end; ++at) {
      old_at += edits[at].sign != '+' ? 1 : 0;
      new_at += edits[at].sign != '-' ? 1 : 0;
    }
  };
  for (size_t i = 0; i < edits.size(); ++i) {
    if (!differs(i)) continue;
    size_t last = i;  // of this hunk: what is nearer than two contexts belongs to it
    for (size_t k = i; k < edits.size() && k <= last + (2 * kContext) + 1; ++k) {
      if (differs(k)) last = k;
    }
    pass(std::max(at, i - std::min(i, kContext)));
    const size_t first = at;
    const size_t old_from = old_at;
    const size_t new_from = new_at;
    pass(std::min(edits.size(), last + 1 + kContext));
    out += fmt::format("@@ -{} +{} @@\n",
                       RangeText(old_from, old_at - old_from),
                       RangeText(new_from, new_at - new_from));
    for (size_t k = first; k < at; ++k) out += fmt::format("{}{}\n", edits[k].sign, edits[k].line);
    i = at - 1;
  }
  return out;
}

}  // namespace berth::cli
