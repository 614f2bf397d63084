// SPDX-License-Identifier: Apache-2.0
// A TextTable aligns columns the way kubectl does: upper-case headers, three spaces between
// columns. Rows may be added after some have been printed (watches): widths only grow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

enum class TableHeader : uint8_t { kShown, kHidden };

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headers, TableHeader header = TableHeader::kShown);

  // Cells are made printable. A row may be shorter than the header.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_ == 0; }

  // What was added since the last call, the header first. "" if there is no row at all.
  std::string Flush();

 private:
  std::vector<std::vector<std::string>> pending_;
  std::vector<size_t> widths_;
  size_t rows_ = 0;
};

// How many columns a terminal needs for valid UTF-8 text: one per code point.
size_t DisplayWidth(std::string_view text);

}  // namespace berth::cli
