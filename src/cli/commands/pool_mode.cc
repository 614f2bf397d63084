// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pool_mode.h"

#include <fmt/core.h>

#include <cctype>

#include "apis/core/pool_parts.h"

namespace berth::cli {

using meta::Value;

PoolMode ModeOf(const Value& pool) {
  const std::string_view mode = pool.GetString({"status", "agent", "mode"});
  if (mode == apis::core::kPoolModeSession) return PoolMode::kSession;
  if (mode == apis::core::kPoolModeApi) return PoolMode::kApi;
  // As the scheduler has it: poollets written for IronCore know nothing of modes and report a
  // state.
  return pool.GetString({"status", "state"}).empty() ? PoolMode::kUnknown : PoolMode::kApi;
}

std::string_view WhyNothingLeaves(PoolMode mode) {
  return mode == PoolMode::kApi
             ? "is in API mode, and its poollet would go on running what is moved off it"
             : "has no mode, for no poollet has announced it, and nobody would stop what is moved "
               "off it";
}

std::string SelectorOf(const Target& pool, const Value& object) {
  if (ModeOf(object) == PoolMode::kSession) return PlacedSelectorOf(object);
  // What the scheduler has placed names its pool, too.
  std::string reference = pool.resource.kind;
  reference.front() = static_cast<char>(std::tolower(reference.front()));
  return fmt::format("spec.{}Ref.name={}", reference, pool.name);
}

std::string PlacedSelectorOf(const Value& object) {
  return fmt::format("status.placement.poolUID={}", object.GetString({"metadata", "uid"}));
}

bool IsPlaced(const Value& object) {
  return !object.GetString({"status", "placement", "poolUID"}).empty();
}

}  // namespace berth::cli
