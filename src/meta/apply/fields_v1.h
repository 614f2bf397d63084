// SPDX-License-Identifier: Apache-2.0
// FieldsV1: a set of field paths as JSON, the form of metadata.managedFields[].fieldsV1. Each
// element of a path is a member of the object of its parent; "." says that the parent itself is in
// the set, unless nothing is below it:
//
//   {"f:spec":{"f:volumes":{"k:{\"name\":\"root\"}":{".":{},"f:device":{}}}}}
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "meta/apply/field_set.h"
#include "meta/value.h"

namespace berth::meta {

// What one set may hold. An object of 1 MiB can have more fields; whoever writes those is not
// remembered field by field.
constexpr size_t kMaxOwnedFields = 10'000;

// BadRequest for anything that is not such a set or holds more than kMaxOwnedFields paths.
Result<FieldSet> ReadFieldsV1(const Value& fields);
Value WriteFieldsV1(const FieldSet& set);

// The elements of list items, canonical: keys in order of their names, numbers as we write them.
// REQUIRES: an object of scalars; a scalar.
std::string KeysElement(const Value& keys);
std::string ItemElement(const Value& item);

}  // namespace berth::meta
