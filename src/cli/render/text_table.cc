// SPDX-License-Identifier: Apache-2.0
#include "cli/render/text_table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr size_t kPadding = 3;
constexpr size_t kColumnMin = 6;  // padding included, so that short columns do not crowd

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

TextTable::TextTable(std::vector<std::string> headers, TableHeader header) {
  widths_.resize(headers.size(), kColumnMin);
  if (header == TableHeader::kHidden) return;
  for (std::string& name : headers) name = Upper(name);
  pending_.push_back(std::move(headers));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  pending_.push_back(std::move(cells));
  ++rows_;
}

std::string TextTable::Flush() {
  if (rows_ == 0) return "";
  for (const auto& row : pending_) {
    if (row.size() > widths_.size()) widths_.resize(row.size(), kColumnMin);
    for (size_t i = 0; i < row.size(); ++i) {
      widths_[i] = std::max(widths_[i], DisplayWidth(row[i]) + kPadding);
    }
  }
  std::string out;
  for (const auto& row : pending_) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths_[i] - DisplayWidth(row[i]), ' ');
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  pending_.clear();
  return out;
}

}  // namespace berth::cli
