// SPDX-License-Identifier: Apache-2.0
#include "poollet/ledger/amounts.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace berth::poollet {
namespace {

__extension__ using Wide = __int128;

int64_t Clamp(Wide value) {
  const Wide low = std::numeric_limits<int64_t>::min();
  const Wide high = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, low, high));
}

void AddTimes(Amounts& to, const Amounts& amounts, int sign) {
  for (const auto& [name, amount] : amounts) {
    if (amount == 0) continue;
    const auto found = to.try_emplace(name, 0).first;
    found->second = Clamp(static_cast<Wide>(found->second) + static_cast<Wide>(amount) * sign);
    if (found->second == 0) to.erase(found);
  }
}

}  // namespace

int64_t AmountOf(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

void Add(Amounts& to, const Amounts& amounts) { AddTimes(to, amounts, 1); }
void Subtract(Amounts& from, const Amounts& amounts) { AddTimes(from, amounts, -1); }

Amounts Beyond(const Amounts& need, const Amounts& have) {
  Amounts beyond;
  for (const auto& [name, amount] : need) {
    const int64_t missing = Clamp(static_cast<Wide>(amount) - AmountOf(have, name));
    if (amount > 0 && missing > 0) beyond[name] = missing;
  }
  return beyond;
}

Amounts Common(const Amounts& a, const Amounts& b) {
  Amounts common;
  for (const auto& [name, amount] : a) {
    const int64_t smaller = std::min(amount, AmountOf(b, name));
    if (smaller > 0) common[name] = smaller;
  }
  return common;
}

std::string Format(const Amounts& amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts) {
    if (!text.empty()) text += ", ";
    text += name == "cpu" ? fmt::format("cpu {}m", amount) : fmt::format("{} {}", name, amount);
  }
  return text.empty() ? "nothing" : text;
}

int64_t ShareOf(int64_t size, int64_t quantity) {
  if (size <= 0) return 0;
  if (quantity <= 0) return fleet::kShareWhole;
  const Wide parts = static_cast<Wide>(fleet::kShareWhole) * size;
  const Wide share = std::max<Wide>(parts / quantity, 1);
  return static_cast<int64_t>(std::min<Wide>(share, std::numeric_limits<int64_t>::max()));
}

}  // namespace berth::poollet
