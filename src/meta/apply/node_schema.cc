// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/internal/node_schema.h"

#include <memory>
#include <unordered_set>
#include <utility>

#include "meta/apply/fields_v1.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta::internal {

namespace {

const TypeInfo* WithoutOptional(const TypeInfo* type) {
  while (type != nullptr && type->kind == TypeKind::kOptional) type = type->element;
  return type;
}

// As far as the type alone says it: lists are merged only where a field declares how.
NodeSchema SchemaOf(const TypeInfo* type) {
  NodeSchema schema{.type = WithoutOptional(type)};
  if (schema.type == nullptr) return schema;
  if (schema.type->kind == TypeKind::kMap) schema.shape = Shape::kMap;
  if (schema.type->kind == TypeKind::kStruct && !schema.type->atomic) {
    schema.shape = Shape::kStruct;
    schema.is_permanent = schema.type == type;
  }
  return schema;
}

// The item's own value of a key, or the key's default; null if there is neither.
Value KeyOf(const NodeSchema& list, const Value& item, std::string_view key) {
  const Value* found = item.Find(key);
  if (found != nullptr && !found->is_null()) return *found;
  const TypeInfo* type = WithoutOptional(list.type->element);
  if (type->kind != TypeKind::kStruct) return {};
  const FoundField field = FindField(*type, key);
  if (field.field == nullptr || field.field->options.fallback.empty()) return {};
  auto fallback = ParseJson(field.field->options.fallback);
  return fallback.ok() ? *std::move(fallback) : Value();
}

bool IsScalar(const Value& value) {
  return value.is_string() || value.is_number() || value.is_bool();
}

// "" if the item cannot be told apart.
std::string ElementOf(const NodeSchema& list, const Value& item) {
  if (list.shape == Shape::kSet) return IsScalar(item) ? ItemElement(item) : std::string();
  Value keys = Value::Object();
  for (const std::string_view key : list.keys) {
    if (key.empty()) continue;
    Value value = KeyOf(list, item, key);
    if (!IsScalar(value)) return {};
    keys.Set(key, std::move(value));
  }
  return KeysElement(keys);
}

struct Destroy {
  const TypeInfo* type;
  void operator()(void* value) const { type->ops->destroy(value); }
};
using Decoded = std::unique_ptr<void, Destroy>;

Decoded Decode(const TypeInfo& type, const Value& value) {
  Decoded decoded(type.ops->create(), Destroy{&type});
  return FromValue(value, type, decoded.get()).ok() ? std::move(decoded)
                                                    : Decoded(nullptr, Destroy{&type});
}

}  // namespace

NodeSchema RootSchema(const TypeInfo& type) { return SchemaOf(&type); }

NodeSchema FieldSchema(const Field& field) {
  NodeSchema schema = SchemaOf(field.type);
  if (schema.type == nullptr || schema.type->kind != TypeKind::kList) return schema;
  const FieldOptions& options = field.options;
  if (options.list_type == "map" && !options.list_keys[0].empty()) {
    schema.shape = Shape::kKeyed;
    schema.keys = options.list_keys;
  } else if (options.list_type == "set") {
    schema.shape = Shape::kSet;
  } else if (options.list_type.empty() && !options.merge_key.empty()) {
    schema.shape = Shape::kKeyed;
    schema.keys = {options.merge_key};
  }
  return schema;
}

NodeSchema MemberSchema(const NodeSchema& parent, std::string_view name) {
  if (parent.shape == Shape::kMap) return SchemaOf(parent.type->element);
  const FoundField found = FindField(*parent.type, name);
  return found.field == nullptr ? NodeSchema() : FieldSchema(*found.field);
}

NodeSchema ItemSchema(const NodeSchema& list) {
  NodeSchema schema = SchemaOf(list.type->element);
  schema.is_permanent = false;  // an item can be added and removed
  return schema;
}

ListElements ElementsOf(const NodeSchema& list, const Value& items) {
  ListElements out;
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < items.items().size(); ++i) {
    std::string element = ElementOf(list, items.items()[i]);
    if (element.empty()) {
      out.problem = "item " + std::to_string(i) + " lacks " +
                    (list.shape == Shape::kSet ? std::string("a value")
                                               : "its key " + std::string(list.keys[0]));
      return out;
    }
    if (!seen.insert(element).second) {
      out.problem = "two items are " + PathText({element});
      return out;
    }
    out.elements.push_back(std::move(element));
  }
  return out;
}

bool SameLeaf(const NodeSchema& schema, const Value& a, const Value& b) {
  if (a == b) return true;
  if (schema.type == nullptr || a.is_null() || b.is_null()) return false;
  const Decoded left = Decode(*schema.type, a);
  const Decoded right = Decode(*schema.type, b);
  return left != nullptr && right != nullptr && DeepEqual(*schema.type, left.get(), right.get());
}

}  // namespace berth::meta::internal
