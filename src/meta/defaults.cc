// SPDX-License-Identifier: Apache-2.0
#include "meta/defaults.h"

#include "base/check.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

// Most fallbacks are plain words and numbers; only the rest goes through the JSON reader.
void Fill(const TypeInfo& type, void* value, std::string_view json) {
  if (type.kind == TypeKind::kOptional) {
    Fill(*type.element, type.optional->emplace(value), json);
    return;
  }
  if (type.kind == TypeKind::kString && !json.contains('\\')) {
    CHECK(json.size() >= 2 && json.front() == '"') << "fallback of a string: " << json;
    static_cast<std::string*>(value)->assign(json.substr(1, json.size() - 2));
    return;
  }
  if (type.kind == TypeKind::kInt64 || type.kind == TypeKind::kInt32) {
    const auto number = ParseInt(json);
    CHECK(number.has_value()) << "fallback of an integer: " << json;
    if (type.kind == TypeKind::kInt64) {
      *static_cast<int64_t*>(value) = *number;
    } else {
      *static_cast<int32_t*>(value) = static_cast<int32_t>(*number);
    }
    return;
  }
  // Fallbacks are constants of the program, not input.
  const Status status = DecodeJson(json, type, value);
  CHECK(status.ok()) << "fallback " << json << ": " << status;
}

}  // namespace

void ApplyFallbacks(const TypeInfo& type, void* value) {
  switch (type.kind) {
    case TypeKind::kStruct:
      for (const Field& field : type.fields) {
        void* at = FieldAt(value, field);
        if (!field.options.fallback.empty() && IsEmpty(*field.type, at)) {
          Fill(*field.type, at, field.options.fallback);
        }
        ApplyFallbacks(*field.type, at);
      }
      break;
    case TypeKind::kOptional:
      if (const void* held = type.optional->get(value); held != nullptr) {
        ApplyFallbacks(*type.element, const_cast<void*>(held));
      }
      break;
    case TypeKind::kList:
      if (type.element->kind == TypeKind::kString) break;
      for (size_t i = 0; i < type.list->size(value); ++i) {
        ApplyFallbacks(*type.element, const_cast<void*>(type.list->at(value, i)));
      }
      break;
    case TypeKind::kMap:
      if (type.element->kind != TypeKind::kStruct) break;
      type.map->for_each(value,
                         const_cast<TypeInfo*>(type.element),
                         [](void* element, const std::string& /*key*/, const void* item) {
                           ApplyFallbacks(*static_cast<const TypeInfo*>(element),
                                          const_cast<void*>(item));
                         });
      break;
    default: break;
  }
}

void SetDefaults(Object& object) {
  const KindInfo& kind = object.kind();
  ApplyFallbacks(*kind.type, object.data());
  if (kind.set_defaults != nullptr) kind.set_defaults(object.data());
}

}  // namespace berth::meta
