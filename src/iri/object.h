// SPDX-License-Identifier: Apache-2.0
// What all objects of a runtime have in common. Every struct here is plain data: no gRPC, no I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace berth::iri {

using StringMap = std::map<std::string, std::string, std::less<>>;
// Values are bytes. They are secrets: never logged, never in an error text.
using SecretMap = std::map<std::string, std::string, std::less<>>;

// An amount per resource. "cpu" counts thousandths of a core; everything else counts whole units:
// bytes of memory and storage, pieces of devices.
using ResourceVector = std::map<std::string, int64_t, std::less<>>;
inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kStorage = "storage";

struct ObjectMetadata {
  std::string id;  // given by the runtime
  StringMap annotations;
  StringMap labels;
  int64_t generation = 0;
  WallTime created_at;  // zero: not set
  WallTime deleted_at;  // zero: not being deleted
  bool operator==(const ObjectMetadata&) const = default;
};

// The value of a label, or "".
std::string_view LabelOf(const ObjectMetadata& metadata, std::string_view key);

// Everything that is set must hold; a selector wants all of its labels equal. No id and no label
// means all objects.
struct ObjectFilter {
  std::string id;
  StringMap labels;
};
bool Matches(const ObjectFilter& filter, const ObjectMetadata& metadata);

struct RuntimeVersion {
  std::string runtime_name;     // the TYPE of machineID's TYPE://ID
  std::string runtime_version;  // semantic version
  bool operator==(const RuntimeVersion&) const = default;
};

enum class EventType : uint8_t { kNormal, kWarning };

// Something that a runtime wants people to know about one of its objects.
struct Event {
  ObjectMetadata involved;
  EventType type = EventType::kNormal;
  std::string reason;   // "Crashed"
  std::string message;  // for a person
  std::string action;   // "Boot"; never "" from Berth's runtimes
  WallTime time;        // whole seconds on the wire
  bool operator==(const Event&) const = default;
};

struct EventFilter {
  std::string id;
  StringMap labels;
  WallTime from;  // inclusive; zero: since ever
  WallTime to;    // the last second, all of it; zero: until now
};
bool Matches(const EventFilter& filter, const Event& event);

}  // namespace berth::iri
