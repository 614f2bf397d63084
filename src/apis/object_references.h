// SPDX-License-Identifier: Apache-2.0
// Which other objects an object names. In-use protection, explanations and clean-up work on this
// list instead of knowing every kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/references.h"
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

// The Volumes and NetworkInterfaces that are made for a machine's templates; empty for other kinds.
std::vector<Reference> EphemeralsOf(const meta::Object& object);

// The finalizer that keeps an object of this kind while it is in use; "" for other kinds.
std::string_view InUseFinalizer(const meta::KindInfo& kind);

// It is deleted, and stays for whoever uses it.
bool IsKeptForUser(const meta::ObjectMeta& metadata);

// The machine that has claimed the Volume or NetworkInterface; nullopt: none, or another kind.
std::optional<core::LocalUidReference> ClaimOf(const meta::Object& part);
// Whether the machine asks for the Volume or NetworkInterface, or has it still.
bool NamesPart(const meta::Object& machine, const meta::Object& part);

// Whether what the object stood for is gone, though others may keep the object for a while: it is
// deleted, no host has it, and nobody uses it (PROTOCOL 4.6).
bool IsGone(const meta::ObjectMeta& metadata);

}  // namespace berth::apis
