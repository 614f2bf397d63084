// SPDX-License-Identifier: Apache-2.0
// What a description says about the members of a JSON object, for strategic merges.
#pragma once

#include <string>
#include <string_view>

#include "meta/reflect.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta::internal {

// A member of an object: its type without optionals (null if nothing is known about it), and how
// its list is merged.
struct MemberSchema {
  const TypeInfo* type = nullptr;
  ListMerge merge = ListMerge::kReplace;
  std::string_view merge_key;
};
// `type` is the object's own type, may be null.
MemberSchema SchemaOf(const TypeInfo* type, std::string_view key);
// The type of a list's items.
const TypeInfo* ItemType(const TypeInfo* list);

// A scalar as text by which items are told apart: 80 and "80" differ.
std::string IdentityOf(const Value& value);

}  // namespace berth::meta::internal
