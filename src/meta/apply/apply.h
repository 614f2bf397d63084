// SPDX-License-Identifier: Apache-2.0
// Server-side apply: a manager says with a configuration which fields it wants and what they are.
// What it said before, no longer says and nobody else owns goes; what others own and it wants
// different is a conflict, unless it insists.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "meta/apply/managers.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

enum class Conflicts : uint8_t { kRefused, kForced };

struct Application {
  const TypeInfo* type = nullptr;
  // For messages.
  std::string api_version;
  std::string manager;
  std::string subresource;
  Conflicts conflicts = Conflicts::kRefused;
  WallTime now;
  // Fields that may be taken from others without asking: what an annotation of kubectl proves to
  // be the applier's own.
  FieldSet takeover;
};

struct Applied {
  Value tree;
  Managers managers;
};

// `live` is empty for a new object; `configuration` has been decoded by the type before. Neither
// has managedFields. Conflict, with a kDuplicate cause (there is an owner already) for every field
// and manager, in the words of Kubernetes;
// BadRequest and RequestTooLarge as FieldsOf says.
Result<Applied> Apply(const Application& application,
                      const Value& live,
                      const Value& configuration,
                      Managers managers);

}  // namespace berth::meta
