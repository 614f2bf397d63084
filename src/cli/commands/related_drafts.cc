// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/related_drafts.h"

#include <algorithm>
#include <array>
#include <set>

namespace berth::cli {
namespace {

using meta::Value;

struct Field {
  std::string_view name;
  std::string_view kind;  // of what it names
};
constexpr std::string_view kMachine = "Machine";
constexpr std::string_view kVolume = "Volume";
constexpr std::string_view kGroup = "MachineGroup";
constexpr std::string_view kClass = "MachineClass";
constexpr std::array kFields = {
    Field{"machineClassRef", kClass},
    Field{"classRef", kClass},  // of a reservation
    Field{"volumeRef", kVolume},
    Field{"volumeSnapshotRef", "VolumeSnapshot"},
    Field{"reservationRef", "Reservation"},
    Field{"groupRef", kGroup},
};

}  // namespace

bool RelatedDrafts::Matters(std::string_view kind) {
  // Of a group its members are asked for, and it is never asked for by them.
  const auto names_it = [&](const Field& field) { return field.kind == kind && kind != kGroup; };
  return kind == kMachine || std::ranges::any_of(kFields, names_it);
}

RelatedDrafts::Name RelatedDrafts::NameOf(const Placement& draft) {
  return {.kind = draft.resource.kind, .namespace_ = draft.namespace_, .name = draft.name};
}

void RelatedDrafts::Collect(const Value& value, Named& named) {
  if (value.is_array()) {
    for (const Value& item : value.items()) Collect(item, named);
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.members()) {
    const auto field = std::ranges::find(kFields, key, &Field::name);
    if (field != kFields.end() && member.is_object()) {
      named.emplace_back(field->kind, member.GetString({"name"}));
    }
    Collect(member, named);
  }
}

void RelatedDrafts::Add(const Placement& draft) {
  const size_t number = drafts_.size();
  if (!by_name_.try_emplace(NameOf(draft), number).second) return;
  drafts_.push_back(draft);
  if (draft.resource.kind != kMachine) return;
  Named named;
  Collect(draft.object, named);
  for (const auto& [kind, name] : named) {
    if (kind != kGroup && kind != kVolume) continue;
    machines_of_.emplace(
        Name{.kind = std::string(kind), .namespace_ = draft.namespace_, .name = name}, number);
  }
}

std::vector<Value> RelatedDrafts::Of(const Placement& object) const {
  const Name own = NameOf(object);
  const std::string& space = object.namespace_;
  std::set<size_t> found;
  std::vector<const Value*> unread = {&object.object};
  const auto find = [&](size_t number) {
    if (found.insert(number).second) unread.push_back(&drafts_[number].object);
  };
  const auto [first, last] = machines_of_.equal_range(own);
  for (auto at = first; at != last; ++at) find(at->second);
  // Copies of volumes may name each other in a long row: no recursion.
  while (!unread.empty()) {
    Named named;
    const Value& next = *unread.back();
    unread.pop_back();
    Collect(next, named);
    for (const auto& [kind, name] : named) {
      const auto known = by_name_.find(
          {.kind = std::string(kind), .namespace_ = kind == kClass ? "" : space, .name = name});
      if (known != by_name_.end()) find(known->second);
    }
  }
  if (const auto self = by_name_.find(own); self != by_name_.end()) found.erase(self->second);
  std::vector<Value> related;
  for (const size_t number : found) related.push_back(drafts_[number].object);
  return related;
}

}  // namespace berth::cli
