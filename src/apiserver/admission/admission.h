// SPDX-License-Identifier: Apache-2.0
// Admission is what the server adds to a write, and what it refuses, beyond the object's own rules:
// it may look at other objects. Pure: everything that it looks at comes through ObjectSource.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "apiserver/registry.h"
#include "base/status.h"
#include "base/time.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// Where admission looks up other objects: the present state of the watch cache, decoded.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  virtual std::optional<meta::Object> Find(const meta::KindInfo& kind,
                                           const ObjectKey& key) const = 0;
  virtual std::vector<meta::Object> List(const meta::KindInfo& kind,
                                         std::string_view namespace_) const = 0;
};

// Changes the object as the server wants it: device names, finalizers of classes, canonical
// references, the number of a priority class, since when a taint is there. `before` is null for a
// new object. Runs after defaulting, before validation. Idempotent.
Status Complete(const meta::Scheme& scheme,
                const ObjectSource& source,
                const meta::Object* before,
                meta::Object& object,
                WallTime now);

// Refuses what the object's own rules cannot see: the growth of volumes whose class forbids it, a
// second default priority class.
// Runs after validation.
Status Check(const meta::Scheme& scheme,
             const ObjectSource& source,
             const meta::Object* before,
             const meta::Object& object);

}  // namespace berth::apiserver
