// SPDX-License-Identifier: Apache-2.0
#include "meta/reflect.h"

#include "meta/ip.h"
#include "meta/quantity.h"
#include "meta/value.h"

namespace berth::meta {
namespace {

template <class T>
const T& As(const void* value) {
  return *static_cast<const T*>(value);
}

bool EqualLists(const TypeInfo& type, const void* a, const void* b) {
  const size_t size = type.list->size(a);
  if (size != type.list->size(b)) return false;
  for (size_t i = 0; i < size; ++i) {
    if (!DeepEqual(*type.element, type.list->at(a, i), type.list->at(b, i))) return false;
  }
  return true;
}

bool EqualMaps(const TypeInfo& type, const void* a, const void* b) {
  if (type.map->size(a) != type.map->size(b)) return false;
  struct Context {
    const TypeInfo& type;
    const void* other;
    bool equal;
  } context{type, b, true};
  type.map->for_each(a, &context, [](void* opaque, const std::string& key, const void* value) {
    auto& at = *static_cast<Context*>(opaque);
    if (!at.equal) return;
    const void* other = at.type.map->find(at.other, key);
    at.equal = other != nullptr && DeepEqual(*at.type.element, value, other);
  });
  return context.equal;
}

bool FindIn(const TypeInfo& type,
            std::string_view name,
            size_t offset,
            size_t& ordinal,
            FoundField& found) {
  for (const Field& field : type.fields) {
    if (field.options.inlined) {
      if (FindIn(*field.type, name, offset + field.offset, ordinal, found)) return true;
      continue;
    }
    if (field.name == name) {
      found = {.field = &field, .offset = offset + field.offset, .ordinal = ordinal};
      return true;
    }
    ++ordinal;
  }
  return false;
}

std::optional<std::string> ScalarText(const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case TypeKind::kBool: return As<bool>(value) ? "true" : "false";
    case TypeKind::kInt32: return std::to_string(As<int32_t>(value));
    case TypeKind::kInt64: return std::to_string(As<int64_t>(value));
    case TypeKind::kString: return As<std::string>(value);
    case TypeKind::kTime: return FormatRfc3339(As<WallTime>(value));
    case TypeKind::kMicroTime: return FormatRfc3339Micro(As<MicroTime>(value).time);
    case TypeKind::kQuantity: return As<Quantity>(value).ToString();
    case TypeKind::kIp: return As<IpAddress>(value).ToString();
    case TypeKind::kIpPrefix: return As<IpPrefix>(value).ToString();
    case TypeKind::kIntOrString: {
      const auto& either = As<IntOrString>(value);
      return either.is_int ? std::to_string(either.number) : either.text;
    }
    default: return std::nullopt;
  }
}

struct PathParts {
  std::string_view head;
  std::string_view rest;
};
PathParts SplitPath(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

bool IsEmpty(const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case TypeKind::kBool: return !As<bool>(value);
    case TypeKind::kInt32: return As<int32_t>(value) == 0;
    case TypeKind::kInt64: return As<int64_t>(value) == 0;
    case TypeKind::kDouble: return As<double>(value) == 0;
    case TypeKind::kString: return As<std::string>(value).empty();
    case TypeKind::kBase64: return As<Base64>(value).bytes.empty();
    case TypeKind::kTime: return As<WallTime>(value).is_zero();
    case TypeKind::kMicroTime: return As<MicroTime>(value).time.is_zero();
    case TypeKind::kQuantity: return As<Quantity>(value).IsZero();
    case TypeKind::kIp: return As<IpAddress>(value).is_null();
    case TypeKind::kIpPrefix: return As<IpPrefix>(value).is_null();
    case TypeKind::kIntOrString: {
      const auto& either = As<IntOrString>(value);
      return either.is_int && either.number == 0;
    }
    case TypeKind::kValue: return As<Value>(value).is_null();
    case TypeKind::kRawJson: return As<RawJson>(value).text.empty();
    case TypeKind::kStruct:
      for (const Field& field : type.fields) {
        if (!IsEmpty(*field.type, FieldAt(value, field))) return false;
      }
      return true;
    case TypeKind::kOptional: return type.optional->get(value) == nullptr;
    case TypeKind::kList: return type.list->size(value) == 0;
    case TypeKind::kMap: return type.map->size(value) == 0;
  }
  return false;
}

bool IsWritten(const Field& field, const void* value) {
  if (field.options.required || field.options.always || !IsEmpty(*field.type, value)) return true;
  return field.type->kind == TypeKind::kStruct && field.name == "status";
}

bool DeepEqual(const TypeInfo& type, const void* a, const void* b) {
  switch (type.kind) {
    case TypeKind::kBool: return As<bool>(a) == As<bool>(b);
    case TypeKind::kInt32: return As<int32_t>(a) == As<int32_t>(b);
    case TypeKind::kInt64: return As<int64_t>(a) == As<int64_t>(b);
    case TypeKind::kDouble: return As<double>(a) == As<double>(b);
    case TypeKind::kString: return As<std::string>(a) == As<std::string>(b);
    case TypeKind::kBase64: return As<Base64>(a) == As<Base64>(b);
    case TypeKind::kTime: return As<WallTime>(a) == As<WallTime>(b);
    case TypeKind::kMicroTime: return As<MicroTime>(a) == As<MicroTime>(b);
    case TypeKind::kQuantity: return As<Quantity>(a) == As<Quantity>(b);
    case TypeKind::kIp: return As<IpAddress>(a) == As<IpAddress>(b);
    case TypeKind::kIpPrefix: return As<IpPrefix>(a) == As<IpPrefix>(b);
    case TypeKind::kIntOrString: return As<IntOrString>(a) == As<IntOrString>(b);
    case TypeKind::kValue: return As<Value>(a) == As<Value>(b);
    case TypeKind::kRawJson: return As<RawJson>(a) == As<RawJson>(b);
    case TypeKind::kStruct:
      for (const Field& field : type.fields) {
        if (!DeepEqual(*field.type, FieldAt(a, field), FieldAt(b, field))) return false;
      }
      return true;
    case TypeKind::kOptional: {
      const void* x = type.optional->get(a);
      const void* y = type.optional->get(b);
      if (x == nullptr || y == nullptr) return x == y;
      return DeepEqual(*type.element, x, y);
    }
    case TypeKind::kList: return EqualLists(type, a, b);
    case TypeKind::kMap: return EqualMaps(type, a, b);
  }
  return false;
}

FoundField FindField(const TypeInfo& type, std::string_view name) {
  FoundField found;
  size_t ordinal = 0;
  FindIn(type, name, 0, ordinal, found);
  return found;
}

std::optional<FoundValue> FindPath(const TypeInfo& type,
                                   const void* object,
                                   std::string_view path) {
  FoundValue at{&type, object};
  while (true) {
    while (at.type->kind == TypeKind::kOptional) {
      at = {at.type->element, at.type->optional->get(at.value)};
      if (at.value == nullptr) return std::nullopt;
    }
    if (path.empty()) return at;
    if (at.type->kind == TypeKind::kMap) {
      // A key may itself contain dots: take all of the rest if that is one.
      const bool whole = at.type->map->find(at.value, path) != nullptr;
      const auto [head, rest] = whole ? PathParts{path, {}} : SplitPath(path);
      const void* value = at.type->map->find(at.value, head);
      if (value == nullptr) return std::nullopt;
      at = {at.type->element, value};
      path = rest;
    } else if (at.type->kind == TypeKind::kStruct) {
      const auto [head, rest] = SplitPath(path);
      const auto found = FindField(*at.type, head);
      if (found.field == nullptr) return std::nullopt;
      at = {found.field->type, static_cast<const char*>(at.value) + found.offset};
      path = rest;
    } else {
      return std::nullopt;
    }
  }
}

std::optional<std::string> GetString(const TypeInfo& type,
                                     const void* object,
                                     std::string_view path) {
  const auto found = FindPath(type, object, path);
  if (!found) return std::nullopt;
  return ScalarText(*found->type, found->value);
}

bool HasPath(const TypeInfo& type, std::string_view path) {
  const TypeInfo* at = &type;
  while (!path.empty()) {
    while (at->kind == TypeKind::kOptional) at = at->element;
    if (at->kind == TypeKind::kMap) return true;
    if (at->kind != TypeKind::kStruct) return false;
    const auto [head, rest] = SplitPath(path);
    const auto found = FindField(*at, head);
    if (found.field == nullptr) return false;
    at = found.field->type;
    path = rest;
  }
  return true;
}

ListMerge ListMergeOf(const Field& field) {
  const auto without_optional = [](const TypeInfo* type) {
    while (type->kind == TypeKind::kOptional) type = type->element;
    return type;
  };
  const TypeInfo* list = without_optional(field.type);
  if (list->kind != TypeKind::kList) return ListMerge::kReplace;
  if (!field.options.merge_key.empty()) return ListMerge::kByKey;
  const bool is_scalar = without_optional(list->element)->kind == TypeKind::kString;
  return field.options.list_type == "set" && is_scalar ? ListMerge::kAsSet : ListMerge::kReplace;
}

}  // namespace berth::meta
