// SPDX-License-Identifier: Apache-2.0
// Which other objects an object names. In-use protection, explanations and clean-up work on this
// list instead of knowing every kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/kind.h"
#include "meta/object.h"

namespace berth::apis {

enum class Hold : uint8_t {
  kMention,  // the named object may go at any time
  kInUse,    // the named object stays while someone names it: classes, networks, prefixes
};

struct Reference {
  const meta::KindInfo* kind = nullptr;
  std::string namespace_;  // "" for cluster-wide kinds
  std::string name;
  std::string field;  // "spec.machineClassRef"
  Hold hold = Hold::kMention;
  bool operator==(const Reference&) const = default;
};

// Everything that the object names, in the order of its fields; empty for kinds that name nothing.
std::vector<Reference> ReferencesOf(const meta::Object& object);

// The finalizer that keeps an object of this kind while it is in use; "" for other kinds.
std::string_view InUseFinalizer(const meta::KindInfo& kind);

}  // namespace berth::apis
