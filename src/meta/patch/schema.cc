// SPDX-License-Identifier: Apache-2.0
#include "meta/patch/internal/schema.h"

#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

const TypeInfo* WithoutOptional(const TypeInfo* type) {
  while (type != nullptr && type->kind == TypeKind::kOptional) type = type->element;
  return type;
}

}  // namespace

namespace internal {

MemberSchema SchemaOf(const TypeInfo* type, std::string_view key) {
  type = WithoutOptional(type);
  if (type == nullptr) return {};
  if (type->kind == TypeKind::kMap) return {.type = WithoutOptional(type->element)};
  if (type->kind != TypeKind::kStruct) return {};
  const FoundField found = FindField(*type, key);
  if (found.field == nullptr) return {};
  return {.type = WithoutOptional(found.field->type),
          .merge = ListMergeOf(*found.field),
          .merge_key = found.field->options.merge_key};
}

const TypeInfo* ItemType(const TypeInfo* list) {
  if (list == nullptr || list->kind != TypeKind::kList) return nullptr;
  return WithoutOptional(list->element);
}

std::string IdentityOf(const Value& value) { return WriteJson(value); }

}  // namespace internal
}  // namespace berth::meta
