// SPDX-License-Identifier: Apache-2.0
#include "controller/machine_sets/set_plan.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace berth::controller {
namespace {

// Whatever somebody wrote into the store: never so many that one set fills it.
size_t ToCount(int32_t said) {
  return static_cast<size_t>(std::clamp(said, 0, apis::berth_dev::kReplicasMax));
}

// Those that are missed least go first: without a place, then not running, then the youngest.
bool GoesBefore(const SetMember& a, const SetMember& b) {
  return std::tuple(a.is_placed, a.is_ready, b.created, b.name) <
         std::tuple(b.is_placed, b.is_ready, a.created, a.name);
}

void RemoveFirst(std::vector<SetMember>& from, size_t count, SetPlan& plan) {
  std::sort(from.begin(), from.end(), GoesBefore);
  for (size_t i = 0; i < std::min(count, from.size()); ++i) plan.remove.push_back(from[i].uid);
}

// Old machines that do not run are no loss; of those that run as many may go as are above the least
// that must run.
void RemoveOld(std::vector<SetMember> old, size_t ready, size_t least_ready, SetPlan& plan) {
  std::sort(old.begin(), old.end(), GoesBefore);
  size_t spare = ready > least_ready ? ready - least_ready : 0;
  for (const SetMember& member : old) {
    if (member.is_ready) {
      if (spare == 0) continue;
      --spare;
    }
    plan.remove.push_back(member.uid);
  }
}

}  // namespace

SetPlan PlanSet(const apis::berth_dev::MachineSetSpec& spec,
                const std::vector<SetMember>& members,
                const std::string& template_hash,
                size_t batch) {
  SetPlan plan;
  std::vector<SetMember> present;
  std::vector<SetMember> old;
  for (const SetMember& member : members) {
    if (member.is_deleting) continue;
    present.push_back(member);
    plan.ready += member.is_ready ? 1 : 0;
    if (member.template_hash == template_hash) {
      ++plan.updated;
    } else {
      old.push_back(member);
    }
  }
  plan.replicas = static_cast<int32_t>(present.size());

  const auto wanted = ToCount(spec.replicas.value_or(1));
  const auto* update =
      spec.strategy && spec.strategy->rolling_update ? &*spec.strategy->rolling_update : nullptr;
  const size_t surge = update ? ToCount(update->max_surge.value_or(1)) : 1;
  const size_t unavailable = update ? ToCount(update->max_unavailable.value_or(0)) : 0;
  const auto updated = static_cast<size_t>(plan.updated);
  const size_t most = wanted + (old.empty() ? 0 : surge);

  if (updated > wanted) {
    std::vector<SetMember> fresh;
    for (const SetMember& member : present) {
      if (member.template_hash == template_hash) fresh.push_back(member);
    }
    RemoveFirst(fresh, updated - wanted, plan);
  }
  if (!old.empty()) {
    const size_t least = wanted > unavailable ? wanted - unavailable : 0;
    // Machines beyond the wanted number (the set shrank) go whether they run or not.
    RemoveOld(old, static_cast<size_t>(plan.ready), least, plan);
  }
  const size_t missing = wanted > updated ? wanted - updated : 0;
  const size_t room = most > present.size() ? most - present.size() : 0;
  plan.create = std::min({missing, room, batch});
  return plan;
}

std::vector<std::string> OrdinalNames(const std::string& set,
                                      const std::vector<SetMember>& taken,
                                      size_t count) {
  std::set<std::string> used;
  for (const SetMember& member : taken) used.insert(member.name);
  std::vector<std::string> names;
  for (size_t i = 0; names.size() < count; ++i) {
    std::string name = set + '-' + std::to_string(i);
    if (!used.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace berth::controller
