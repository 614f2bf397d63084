// SPDX-License-Identifier: Apache-2.0
// Structs are described once, directly below their members:
//
//   struct LocalDisk {
//     std::optional<Quantity> size_limit;
//     std::string image;
//   };
//   BERTH_DESCRIBE(LocalDisk, "compute.v1alpha1.LocalDiskVolumeSource", "A disk that lives on the
//   host.",
//                  BERTH_FIELD(size_limit, "sizeLimit", "How large the disk may grow."),
//                  BERTH_FIELD(image, "image", "What the disk is filled with."))
//
// The description is a constant table (TypeInfo). Codec, defaulting, OpenAPI, selectors, patches,
// explain and tests are plain functions over it; nothing is generated per kind. A member that is
// not described does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::meta {

class Quantity;      // meta/quantity.h
class Value;         // meta/value.h: any JSON
class IpAddress;     // meta/ip.h
class IpPrefix;      // meta/ip.h
struct Base64;       // below
struct RawJson;      // below
struct MicroTime;    // below
struct IntOrString;  // below

enum class TypeKind : uint8_t {
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kString,
  kBase64,     // bytes, base64 in JSON
  kTime,       // RFC 3339 seconds, null when zero
  kMicroTime,  // RFC 3339 with microseconds
  kQuantity,   // "16Gi"
  kIp,         // "10.0.0.1"
  kIpPrefix,   // "10.0.0.0/24"
  kIntOrString,
  kValue,    // any JSON, as a tree
  kRawJson,  // any JSON, as its text
  kStruct,
  kOptional,
  kList,
  kMap,  // from string
};

// Bytes that JSON carries as base64 (Secret data).
struct Base64 {
  std::string bytes;
  bool operator==(const Base64&) const = default;
};

// JSON that hardly anybody looks into, kept as its compact text: a tree would cost everybody who
// decodes the object an allocation per member.
struct RawJson {
  std::string text;  // valid JSON; "" if absent
  bool operator==(const RawJson&) const = default;
};

struct MicroTime {
  WallTime time;
  bool operator==(const MicroTime&) const = default;
};

struct IntOrString {
  bool is_int = true;
  int64_t number = 0;
  std::string text;
  bool operator==(const IntOrString&) const = default;
};

struct TypeInfo;

constexpr size_t kMaxEnumValues = 8;

// What a text may have in bytes if its field does not say otherwise. Names, references and messages
// are shorter by far, and no single one fills an object, which may have 1 MiB.
constexpr size_t kMaxStringBytes = 64 * 1024;
// Of a field whose kind limits it by rules of its own.
constexpr size_t kNoLimit = static_cast<size_t>(-1);

// What a field's declaration may add. Everything else follows from its C++ type.
struct FieldOptions {
  // In OpenAPI's "required" list, written even when empty, and an error when it is missing or empty
  // after defaulting.
  bool required = false;
  // In OpenAPI's "required" list and always written, but empty is allowed (Go: no omitempty, no
  // check).
  bool always = false;
  // The member's own fields appear on this level, as Go's inline structs do.
  bool inlined = false;
  // The allowed values of a string, or of each item of a list of strings; empty: any. "" is allowed
  // too unless the field is required.
  std::array<std::string_view, kMaxEnumValues> values = {};
  // What the field becomes when it is absent, as JSON: "\"On\"", "2048".
  std::string_view fallback = {};
  // Lists of structs: strategic merge patch merges items that agree on this field; otherwise the
  // list is replaced.
  std::string_view merge_key = {};
  // With merge_key: items are unions, a client's patch names the keys that stay. Published as
  // x-kubernetes-patch-strategy "merge,retainKeys" instead of "merge".
  bool retain_keys = false;
  // x-kubernetes-list-type: "atomic", "set", "map" (with list_keys); x-kubernetes-patch-strategy
  // follows merge_key.
  std::string_view list_type = {};
  std::array<std::string_view, 2> list_keys = {};
  // OpenAPI format beyond the type's own, and the largest/smallest number.
  std::string_view format = {};
  // The most bytes of a string, or of each string of a list or map.
  size_t longest = kMaxStringBytes;
};

struct Field {
  std::string_view name;  // JSON
  size_t offset = 0;
  const TypeInfo* type = nullptr;
  std::string_view doc;
  FieldOptions options;
};

struct ListOps {
  size_t (*size)(const void* list);
  const void* (*at)(const void* list, size_t index);
  void* (*append)(void* list);  // a new, empty last element
  void (*clear)(void* list);
};

struct MapOps {
  size_t (*size)(const void* map);
  // Calls visit for each entry in key order.
  void (*for_each)(const void* map,
                   void* context,
                   void (*visit)(void* context, const std::string& key, const void* value));
  void* (*insert)(void* map, std::string key);  // the value at key, new and empty if it was absent
  const void* (*find)(const void* map, std::string_view key);  // null if absent
  void (*clear)(void* map);
};

struct OptionalOps {
  const void* (*get)(const void* optional);  // null if absent
  void* (*emplace)(void* optional);          // a new, empty value
  void (*reset)(void* optional);
};

// Every type has them.
struct ValueOps {
  void* (*create)();
  void* (*copy)(const void* value);
  void (*destroy)(void* value);
  void (*assign)(void* to, const void* from);
  void (*reset)(void* value);  // to a new, empty value
};

struct TypeInfo {
  TypeKind kind = TypeKind::kString;
  const TypeInfo* element = nullptr;  // kOptional, kList, kMap
  const ListOps* list = nullptr;
  const MapOps* map = nullptr;
  const OptionalOps* optional = nullptr;
  const ValueOps* ops = nullptr;
  // kStruct
  std::string_view name;  // unique, used as OpenAPI definition name
  std::string_view doc;
  std::span<const Field> fields;
  bool atomic = false;  // x-kubernetes-map-type: atomic
};

template <class T>
struct Tag {};

template <size_t N>
struct Description {
  std::string_view name;
  std::string_view doc;
  std::array<Field, N> fields;
  bool atomic = false;
};

namespace internal {

// How many members an aggregate has: the longest brace list of anything that still initialises it.
struct Anything {
  template <class T>
  operator T() const;  // never defined
};
template <class T, class... A>
consteval size_t CountMembers() {
  if constexpr (requires { T{A{}..., Anything{}}; }) {
    return CountMembers<T, A..., Anything>();
  } else {
    return sizeof...(A);
  }
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
consteval TypeKind KindOf() {
  if constexpr (std::is_same_v<T, bool>)
    return TypeKind::kBool;
  else if constexpr (std::is_same_v<T, int32_t>)
    return TypeKind::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return TypeKind::kInt64;
  else if constexpr (std::is_same_v<T, double>)
    return TypeKind::kDouble;
  else if constexpr (std::is_same_v<T, std::string>)
    return TypeKind::kString;
  else if constexpr (std::is_same_v<T, Base64>)
    return TypeKind::kBase64;
  else if constexpr (std::is_same_v<T, WallTime>)
    return TypeKind::kTime;
  else if constexpr (std::is_same_v<T, MicroTime>)
    return TypeKind::kMicroTime;
  else if constexpr (std::is_same_v<T, Quantity>)
    return TypeKind::kQuantity;
  else if constexpr (std::is_same_v<T, IpAddress>)
    return TypeKind::kIp;
  else if constexpr (std::is_same_v<T, IpPrefix>)
    return TypeKind::kIpPrefix;
  else if constexpr (std::is_same_v<T, IntOrString>)
    return TypeKind::kIntOrString;
  else if constexpr (std::is_same_v<T, Value>)
    return TypeKind::kValue;
  else if constexpr (std::is_same_v<T, RawJson>)
    return TypeKind::kRawJson;
  else if constexpr (IsOptional<T>::value)
    return TypeKind::kOptional;
  else if constexpr (IsList<T>::value)
    return TypeKind::kList;
  else if constexpr (IsMap<T>::value)
    return TypeKind::kMap;
  else
    return TypeKind::kStruct;
}

template <class T>
inline constexpr ListOps kListOps = {
    .size = [](const void* list) { return static_cast<const std::vector<T>*>(list)->size(); },
    .at = [](const void* list, size_t index) -> const void* {
      return &(*static_cast<const std::vector<T>*>(list))[index];
    },
    .append = [](void* list) -> void* {
      return &static_cast<std::vector<T>*>(list)->emplace_back();
    },
    .clear = [](void* list) { static_cast<std::vector<T>*>(list)->clear(); },
};

template <class T>
inline constexpr MapOps kMapOps = {
    .size =
        [](const void* map) { return static_cast<const std::map<std::string, T>*>(map)->size(); },
    .for_each =
        [](const void* map,
           void* context,
           void (*visit)(void* context, const std::string& key, const void* value)) {
          for (const auto& [key, value] : *static_cast<const std::map<std::string, T>*>(map)) {
            visit(context, key, &value);
          }
        },
    .insert = [](void* map, std::string key) -> void* {
      return &(*static_cast<std::map<std::string, T>*>(map))[std::move(key)];
    },
    .find = [](const void* map, std::string_view key) -> const void* {
      const auto& typed = *static_cast<const std::map<std::string, T>*>(map);
      const auto found = typed.find(std::string(key));
      return found == typed.end() ? nullptr : &found->second;
    },
    .clear = [](void* map) { static_cast<std::map<std::string, T>*>(map)->clear(); },
};

template <class T>
inline constexpr OptionalOps kOptionalOps = {
    .get = [](const void* optional) -> const void* {
      const auto& typed = *static_cast<const std::optional<T>*>(optional);
      return typed.has_value() ? &*typed : nullptr;
    },
    .emplace = [](void* optional) -> void* {
      return &static_cast<std::optional<T>*>(optional)->emplace();
    },
    .reset = [](void* optional) { static_cast<std::optional<T>*>(optional)->reset(); },
};

template <class T>
inline constexpr ValueOps kValueOps = {
    .create = []() -> void* { return new T(); },
    .copy = [](const void* value) -> void* { return new T(*static_cast<const T*>(value)); },
    .destroy = [](void* value) { delete static_cast<T*>(value); },
    .assign = [](void* to,
                 const void* from) { *static_cast<T*>(to) = *static_cast<const T*>(from); },
    .reset = [](void* value) { *static_cast<T*>(value) = T(); },
};

template <class T>
struct TypeOf;

template <class T>
inline constexpr auto kDescription = BerthDescribe(Tag<T>{});

template <class T>
consteval TypeInfo MakeTypeInfo() {
  TypeInfo info{.kind = KindOf<T>(), .ops = &kValueOps<T>};
  if constexpr (IsOptional<T>::value) {
    info.element = &TypeOf<typename T::value_type>::kInfo;
    info.optional = &kOptionalOps<typename T::value_type>;
  } else if constexpr (IsList<T>::value) {
    info.element = &TypeOf<typename T::value_type>::kInfo;
    info.list = &kListOps<typename T::value_type>;
  } else if constexpr (IsMap<T>::value) {
    info.element = &TypeOf<typename T::mapped_type>::kInfo;
    info.map = &kMapOps<typename T::mapped_type>;
  } else if constexpr (KindOf<T>() == TypeKind::kStruct) {
    info.name = kDescription<T>.name;
    info.doc = kDescription<T>.doc;
    info.fields = kDescription<T>.fields;
    info.atomic = kDescription<T>.atomic;
  }
  return info;
}

template <class T>
struct TypeOf {
  static constexpr TypeInfo kInfo = MakeTypeInfo<T>();
};

template <class T>
consteval Field MakeField(std::string_view name,
                          size_t offset,
                          std::string_view doc,
                          FieldOptions options = {}) {
  return {
      .name = name, .offset = offset, .type = &TypeOf<T>::kInfo, .doc = doc, .options = options};
}

}  // namespace internal

// The description of a type: a struct with BERTH_DESCRIBE, or anything that such structs are made
// of.
template <class T>
constexpr const TypeInfo& TypeInfoOf() {
  return internal::TypeOf<T>::kInfo;
}

inline const void* FieldAt(const void* object, const Field& field) {
  return static_cast<const char*>(object) + field.offset;
}
inline void* FieldAt(void* object, const Field& field) {
  return static_cast<char*>(object) + field.offset;
}

}  // namespace berth::meta

#define BERTH_DESCRIBE_(T, NAME, DOC, ATOMIC, ...)                             \
  consteval auto BerthDescribe(::berth::meta::Tag<T>) {                        \
    using Self = T;                                                            \
    const auto fields = std::to_array<::berth::meta::Field>({__VA_ARGS__});    \
    static_assert(fields.size() == ::berth::meta::internal::CountMembers<T>(), \
                  "every member of " #T " is described, in one BERTH_FIELD");  \
    return ::berth::meta::Description<fields.size()>{                          \
        .name = NAME, .doc = DOC, .fields = fields, .atomic = ATOMIC};         \
  }

// Stands directly below the struct, in its namespace.
#define BERTH_DESCRIBE(T, NAME, DOC, ...) BERTH_DESCRIBE_(T, NAME, DOC, false, __VA_ARGS__)
// The same for x-kubernetes-map-type: atomic: apply and merge treat the struct as one value.
#define BERTH_DESCRIBE_ATOMIC(T, NAME, DOC, ...) BERTH_DESCRIBE_(T, NAME, DOC, true, __VA_ARGS__)
// BERTH_FIELD(member, "jsonName", "what it means", {.required = true})
#define BERTH_FIELD(member, json, doc, ...)                   \
  ::berth::meta::internal::MakeField<decltype(Self::member)>( \
      json, offsetof(Self, member), doc __VA_OPT__(, ) __VA_ARGS__)
