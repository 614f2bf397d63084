// SPDX-License-Identifier: Apache-2.0
// Objects as JSON trees, walked by their type. Trees have no apiVersion and kind. What a tree holds
// at a place must be what the type says, or null: decode it first.
#pragma once

#include "base/result.h"
#include "meta/apply/field_set.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

// The fields that a configuration states: leaves, the keys of maps and items of lists that are
// merged, and what is null or {}. BadRequest if items of a merged list cannot be told apart, or if
// there are more than kMaxOwnedFields.
Result<FieldSet> FieldsOf(const TypeInfo& type, const Value& configuration);

// What differs, by the leaves; of whole structs, maps and items that come or go, they too.
struct Differences {
  FieldSet added;
  FieldSet modified;
  FieldSet removed;
  bool empty() const { return added.empty() && modified.empty() && removed.empty(); }
};
Differences Compare(const TypeInfo& type, const Value& before, const Value& after);

// `live` with everything that the configuration says. Leaves that mean the same stay as they were
// written. Items that both have come in the configuration's order.
Value Merge(const TypeInfo& type, const Value& live, const Value& configuration);

// Takes out what is in `unwanted` and not in `owned`. A map key or item goes with everything in it,
// a field stays while something in it is owned. What is empty afterwards goes too.
void Prune(const TypeInfo& type, const FieldSet& unwanted, const FieldSet& owned, Value& tree);

}  // namespace berth::meta
