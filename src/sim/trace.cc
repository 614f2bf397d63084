// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.h"

#include <fmt/format.h>

namespace berth::sim {
namespace {

constexpr uint64_t kPrime = 0x100000001b3ULL;

}  // namespace

std::string FormatVirtual(Time now) {
  return fmt::format("{:.6f}s", static_cast<double>(now.nanos()) / 1e9);
}

void Trace::Add(Time now, std::string_view line) {
  hash_ = (hash_ ^ static_cast<uint64_t>(now.nanos())) * kPrime;
  for (const char c : line) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * kPrime;
  lines_.push_back(fmt::format("{:>14}  {}", FormatVirtual(now), line));
  if (lines_.size() > kLinesMax) lines_.pop_front();
}

}  // namespace berth::sim
