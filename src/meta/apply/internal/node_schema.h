// SPDX-License-Identifier: Apache-2.0
// How apply sees a place in an object: as one value, or as fields or items that have owners of
// their own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta::internal {

enum class Shape : uint8_t {
  kLeaf,    // scalars, and everything atomic
  kStruct,  // named fields
  kMap,
  kKeyed,  // a list of objects that are told apart by keys
  kSet,    // a list of scalars
};

struct NodeSchema {
  Shape shape = Shape::kLeaf;
  const TypeInfo* type = nullptr;  // without optionals; null if nothing is known
  // A struct that is there whatever it holds, so nobody has added or can remove it.
  bool is_permanent = false;
  std::array<std::string_view, 2> keys = {};  // kKeyed
};

NodeSchema RootSchema(const TypeInfo& type);
NodeSchema FieldSchema(const Field& field);
// REQUIRES: kStruct or kMap.
NodeSchema MemberSchema(const NodeSchema& parent, std::string_view name);
// REQUIRES: kKeyed or kSet.
NodeSchema ItemSchema(const NodeSchema& list);

// The elements of all items, in order. What an item lacks of its keys is their default.
struct ListElements {
  std::vector<std::string> elements;
  std::string problem;  // not "": some item has no key or the same as another; `elements` is void
};
ListElements ElementsOf(const NodeSchema& list, const Value& items);

// By value of the type: quantities by amount, times by moment.
bool SameLeaf(const NodeSchema& schema, const Value& a, const Value& b);

}  // namespace berth::meta::internal
