// SPDX-License-Identifier: Apache-2.0
// Described structs as JSON trees.
#include "base/strings.h"
#include "meta/ip.h"
#include "meta/json.h"
#include "meta/quantity.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

template <class T>
const T& As(const void* value) {
  return *static_cast<const T*>(value);
}

void AddMembers(const TypeInfo& type, const void* value, Value& out) {
  for (const Field& field : type.fields) {
    const void* at = FieldAt(value, field);
    if (field.options.inlined) {
      AddMembers(*field.type, at, out);
    } else if (IsWritten(field, at)) {
      out.members().push_back({std::string(field.name), ToValue(*field.type, at)});
    }
  }
}

Value MapToValue(const TypeInfo& type, const void* value) {
  struct Context {
    const TypeInfo& element;
    Value out;
  } context{*type.element, Value::Object()};
  type.map->for_each(value, &context, [](void* opaque, const std::string& key, const void* item) {
    auto& at = *static_cast<Context*>(opaque);
    at.out.members().push_back({key, ToValue(at.element, item)});
  });
  return std::move(context.out);
}

Value TextOrNull(std::string text) { return text.empty() ? Value() : Value(std::move(text)); }

}  // namespace

Value ToValue(const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case TypeKind::kBool: return As<bool>(value);
    case TypeKind::kInt32: return int64_t{As<int32_t>(value)};
    case TypeKind::kInt64: return As<int64_t>(value);
    case TypeKind::kDouble: return As<double>(value);
    case TypeKind::kString: return As<std::string>(value);
    case TypeKind::kBase64: return Base64Encode(As<Base64>(value).bytes);
    case TypeKind::kTime:
      if (As<WallTime>(value).is_zero()) return {};
      return FormatRfc3339(As<WallTime>(value));
    case TypeKind::kMicroTime:
      if (As<MicroTime>(value).time.is_zero()) return {};
      return FormatRfc3339Micro(As<MicroTime>(value).time);
    case TypeKind::kQuantity: return As<Quantity>(value).ToString();
    case TypeKind::kIp: return TextOrNull(As<IpAddress>(value).ToString());
    case TypeKind::kIpPrefix: return TextOrNull(As<IpPrefix>(value).ToString());
    case TypeKind::kIntOrString: {
      const auto& either = As<IntOrString>(value);
      return either.is_int ? Value(either.number) : Value(either.text);
    }
    case TypeKind::kValue: return As<Value>(value);
    case TypeKind::kRawJson: {
      auto tree = ParseJson(As<RawJson>(value).text);
      return tree.ok() ? *std::move(tree) : Value();  // "" is absent; nothing else is no JSON
    }
    case TypeKind::kStruct: {
      Value out = Value::Object();
      AddMembers(type, value, out);
      return out;
    }
    case TypeKind::kOptional: {
      const void* held = type.optional->get(value);
      return held == nullptr ? Value() : ToValue(*type.element, held);
    }
    case TypeKind::kList: {
      std::vector<Value> items;
      const size_t size = type.list->size(value);
      items.reserve(size);
      for (size_t i = 0; i < size; ++i)
        items.push_back(ToValue(*type.element, type.list->at(value, i)));
      return Value::Array(std::move(items));
    }
    case TypeKind::kMap: return MapToValue(type, value);
  }
  return {};
}

}  // namespace berth::meta
