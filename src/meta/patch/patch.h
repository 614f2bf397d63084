// SPDX-License-Identifier: Apache-2.0
// The patches that Kubernetes knows, on JSON trees. A patch that is malformed is BadRequest; one
// that does not fit the object (a failed test, a missing path) is Invalid. The given value is not
// changed.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

constexpr size_t kMaxJsonPatchOperations = 10'000;
// What a JSON patch may copy in all, in characters and nodes, so that "copy" cannot grow an object
// exponentially.
constexpr size_t kMaxJsonPatchCopied = 3 * 1024 * 1024;
// Members and items that a JSON patch may look at or move in all: bounds 10,000 operations on one
// huge list to well under a second.
constexpr size_t kMaxJsonPatchSteps = 20'000'000;

// RFC 6902: a list of add, remove, replace, move, copy, test.
Result<Value> ApplyJsonPatch(const Value& current, const Value& patch);

// RFC 7386. The patch must be an object.
Result<Value> ApplyMergePatch(const Value& current, const Value& patch);

// Kubernetes' strategic merge patch: like a merge patch, but lists with a merge key (and sets of
// scalars) are merged by item, and directives say more: $patch: replace|delete|merge, $retainKeys,
// $setElementOrder/<list>, $deleteFromPrimitiveList/<list>.
Result<Value> ApplyStrategicMergePatch(const Value& current,
                                       const Value& patch,
                                       const TypeInfo& type);

// What `apply` sends: a strategic merge patch that brings `current` to `modified`, and removes what
// was in `original` (the last applied state) but is no longer in `modified`. Fields that others set
// stay. An empty object means that there is nothing to do.
Value ThreeWayMergePatch(const Value& original,
                         const Value& modified,
                         const Value& current,
                         const TypeInfo& type);
// The same as a merge patch of RFC 7386: lists are replaced whole.
Value ThreeWayJsonMergePatch(const Value& original, const Value& modified, const Value& current);

}  // namespace berth::meta
