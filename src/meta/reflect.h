// SPDX-License-Identifier: Apache-2.0
// Looking at described structs without knowing their C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meta/type.h"

namespace berth::meta {

// Whether there is nothing to say: false, 0, "", no items, an absent optional, the zero time, a
// struct of nothing but such. An optional that is there is never empty, whatever it holds.
bool IsEmpty(const TypeInfo& type, const void* value);

// Whether encoding writes a field that holds this value: it is not empty, or declared to be written
// anyway, or a status, which clients look into and patch without asking whether it is there.
bool IsWritten(const Field& field, const void* value);

// By value: quantities by amount, JSON regardless of member order.
bool DeepEqual(const TypeInfo& type, const void* a, const void* b);

// A field by its JSON name, looked for inside inlined structs too. `offset` is from the start of
// the outer struct; `ordinal` counts fields in order, inlined ones in place.
struct FoundField {
  const Field* field = nullptr;  // null: there is none
  size_t offset = 0;
  size_t ordinal = 0;
};
FoundField FindField(const TypeInfo& type, std::string_view name);

// What stands at a dotted path: "spec.machinePoolRef.name", "metadata.labels.app" (the last part
// may be a map's key and then contain dots). Null if an optional or a key on the way is absent or
// the type has no such field; optionals are looked into.
struct FoundValue {
  const TypeInfo* type = nullptr;
  const void* value = nullptr;
};
std::optional<FoundValue> FindPath(const TypeInfo& type, const void* object, std::string_view path);

// The scalar at a path as text: "true", "8080", "16Gi". Null if there is none, or no scalar.
std::optional<std::string> GetString(const TypeInfo& type,
                                     const void* object,
                                     std::string_view path);

// Whether the type has a field (or map) at this path, whatever an object holds.
bool HasPath(const TypeInfo& type, std::string_view path);

// How a strategic merge patch treats a field that is a list. What OpenAPI publishes follows from
// it.
enum class ListMerge : uint8_t {
  kReplace,
  kByKey,  // items are objects that agree on FieldOptions::merge_key
  kAsSet,  // items are scalars
};
ListMerge ListMergeOf(const Field& field);

}  // namespace berth::meta
