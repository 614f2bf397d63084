// SPDX-License-Identifier: Apache-2.0
#include "iri/object.h"

#include <algorithm>
#include <limits>

#include "iri/machine.h"

namespace berth::iri {

namespace {

bool HasAll(const StringMap& labels, const StringMap& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const auto found = labels.find(entry.first);
    return found != labels.end() && found->second == entry.second;
  });
}

}  // namespace

std::string_view LabelOf(const ObjectMetadata& metadata, std::string_view key) {
  const auto found = metadata.labels.find(key);
  return found == metadata.labels.end() ? std::string_view() : std::string_view(found->second);
}

bool Matches(const ObjectFilter& filter, const ObjectMetadata& metadata) {
  return (filter.id.empty() || filter.id == metadata.id) && HasAll(metadata.labels, filter.labels);
}

bool Matches(const EventFilter& filter, const Event& event) {
  if (!filter.id.empty() && filter.id != event.involved.id) return false;
  // Who goes on from the last event that was told does so to the nanosecond; who names an end names
  // a second, all of which counts.
  if (!filter.from.is_zero() && event.time < filter.from) return false;
  if (!filter.to.is_zero() && event.time.seconds() > filter.to.seconds()) return false;
  return HasAll(event.involved.labels, filter.labels);
}

ResourceVector ToResourceVector(const MachineClass& machine_class) {
  constexpr int64_t kMillisPerCore = 1000;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / kMillisPerCore;
  ResourceVector resources;
  for (const auto& [name, value] : machine_class.capabilities) {
    resources[name] = name == kCpu ? std::min(value, kMost) * kMillisPerCore : value;
  }
  return resources;
}

}  // namespace berth::iri
