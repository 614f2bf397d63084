// SPDX-License-Identifier: Apache-2.0
#include "app/bench/placement_tally.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace berth::app {
namespace {

// Named in a verdict; the rest is counted.
constexpr size_t kNamesMax = 8;

bool IsWhereItIsBound(const ListedMachine& machine, const Holdings& holdings) {
  const auto held = holdings.find(machine.uid);
  return !machine.pool.empty() && held != holdings.end() &&
         std::ranges::find(held->second, machine.pool) != held->second.end();
}

// "3 were lost (a, b, c)"
std::string Complain(const std::set<std::string>& names, std::string_view what) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kNamesMax) {
      shown.push_back(fmt::format("{} more", names.size() - kNamesMax));
      break;
    }
    shown.push_back(name);
  }
  return fmt::format(
      "{} {} {} ({})", names.size(), names.size() == 1 ? "was" : "were", what, Join(shown, ", "));
}

}  // namespace

Status PlacementTally::Verdict() const {
  if (is_clean()) return OkStatus();
  std::vector<std::string> complaints;
  if (!lost.empty()) complaints.push_back(Complain(lost, "lost"));
  if (!placed_twice.empty()) complaints.push_back(Complain(placed_twice, "placed twice"));
  return Internal(
      fmt::format("of {} acknowledged machines {}", acknowledged, Join(complaints, ", ")));
}

PlacementTally CountPlacements(const std::set<std::string>& acknowledged,
                               const std::map<std::string, ListedMachine>& listed,
                               const Holdings& holdings) {
  PlacementTally tally;
  tally.acknowledged = acknowledged.size();
  for (const std::string& name : acknowledged) {
    const auto machine = listed.find(name);
    if (machine == listed.end() || !IsWhereItIsBound(machine->second, holdings)) {
      tally.lost.insert(name);
    }
  }
  std::map<std::string, std::string> names;  // by UID; "": being deleted
  for (const auto& [name, machine] : listed) {
    if (machine.epoch > 1) tally.placed_twice.insert(name);
    names[machine.uid] = machine.is_deleting ? "" : name;
  }
  for (const auto& [uid, hosts] : holdings) {
    if (hosts.size() < 2) continue;
    const auto name = names.find(uid);
    if (name == names.end()) {
      tally.placed_twice.insert(uid);
    } else if (!name->second.empty()) {
      tally.placed_twice.insert(name->second);
    }
  }
  return tally;
}

}  // namespace berth::app
