// SPDX-License-Identifier: Apache-2.0
#include "image/demo/kernel_modules.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <tuple>

#include "base/strings.h"

namespace berth::image {
namespace {

constexpr std::string_view kKernelPrefix = "vmlinuz-";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A name as its words and numbers, so that 6.10 is newer than 6.9.
std::vector<std::tuple<bool, uint64_t, std::string>> Pieces(std::string_view name) {
  std::vector<std::tuple<bool, uint64_t, std::string>> pieces;
  while (!name.empty()) {
    const bool is_number = IsDigit(name.front());
    const auto end = std::ranges::find_if(name, [&](char c) { return IsDigit(c) != is_number; });
    const std::string_view piece(name.begin(), end);
    const uint64_t number = is_number ? ParseUint(piece).value_or(0) : 0;
    pieces.emplace_back(is_number, number, is_number ? std::string() : std::string(piece));
    name.remove_prefix(piece.size());
  }
  return pieces;
}

// "kernel/drivers/net/virtio_net.ko" -> "virtio_net". Names have '-' and '_' for the same.
std::string ModuleName(std::string_view file) {
  file = file.substr(file.rfind('/') + 1);
  std::string name(file.substr(0, file.find('.')));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace

std::string ChooseKernel(const std::vector<std::string>& names) {
  std::string best;
  const auto rank = [](const std::string& name) {
    return std::tuple(name.find("-cloud-") != std::string::npos, Pieces(name));
  };
  for (const std::string& name : names) {
    if (!name.starts_with(kKernelPrefix)) continue;
    if (best.empty() || rank(best) < rank(name)) best = name;
  }
  return best;
}

std::vector<std::string> LoadOrder(std::string_view modules_dep,
                                   std::span<const std::string_view> wanted) {
  // A line is "FILE: NEEDED...", with all that are needed, the first to be loaded last.
  std::map<std::string, std::vector<std::string>, std::less<>> lines;
  for (const std::string_view line : Split(modules_dep, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::vector<std::string> files = {std::string(line.substr(0, colon))};
    for (const std::string_view needed : Split(line.substr(colon + 1), ' ')) {
      if (!needed.empty()) files.emplace_back(needed);
    }
    lines.emplace(ModuleName(files.front()), std::move(files));
  }
  std::vector<std::string> order;
  for (const std::string_view name : wanted) {
    const auto found = lines.find(name);
    if (found == lines.end()) continue;
    for (const std::string& file : found->second | std::views::reverse) {
      if (std::ranges::find(order, file) == order.end()) order.push_back(file);
    }
  }
  return order;
}

}  // namespace berth::image
