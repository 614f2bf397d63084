// SPDX-License-Identifier: Apache-2.0
#include "meta/openapi/schema.h"

#include <vector>

#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

constexpr std::string_view kTime = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr std::string_view kMicroTime = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
constexpr std::string_view kQuantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
constexpr std::string_view kIp = "com.github.ironcore-dev.ironcore.api.common.v1alpha1.IP";
constexpr std::string_view kIpPrefix =
    "com.github.ironcore-dev.ironcore.api.common.v1alpha1.IPPrefix";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::string_view kGroupVersionKind = "x-kubernetes-group-version-kind";

Value Scalar(std::string_view type, std::string_view format = {}) {
  Value schema = Value::Object();
  schema.Set("type", type);
  if (!format.empty()) schema.Set("format", format);
  return schema;
}

void AddEnum(const FieldOptions& options, Value& schema) {
  std::vector<Value> values;
  for (const auto value : options.values) {
    if (!value.empty()) values.emplace_back(value);
  }
  if (!values.empty()) schema.Set("enum", Value::Array(std::move(values)));
}

void AddListExtensions(const Field& field, Value& schema) {
  const FieldOptions& options = field.options;
  if (!options.list_type.empty()) schema.Set("x-kubernetes-list-type", options.list_type);
  std::vector<Value> keys;
  for (const auto key : options.list_keys) {
    if (!key.empty()) keys.emplace_back(key);
  }
  if (!keys.empty()) schema.Set("x-kubernetes-list-map-keys", Value::Array(std::move(keys)));
  // Clients make their patches by this; it must be what the server does with them.
  if (ListMergeOf(field) == ListMerge::kAsSet) schema.Set("x-kubernetes-patch-strategy", "merge");
  if (ListMergeOf(field) == ListMerge::kByKey) {
    schema.Set("x-kubernetes-patch-merge-key", options.merge_key);
    schema.Set("x-kubernetes-patch-strategy", options.retain_keys ? "merge,retainKeys" : "merge");
  }
}

const TypeInfo& Unwrapped(const TypeInfo& type) {
  return type.kind == TypeKind::kOptional ? *type.element : type;
}

void AddGroupVersionKind(std::string_view group,
                         const KindInfo& kind,
                         std::string name,
                         Value& schema) {
  Value* list = schema.Find(kGroupVersionKind);
  if (list == nullptr) list = &schema.Set(kGroupVersionKind, Value::Array());
  list->items().push_back(GroupVersionKindValue(group, kind.version, name));
}

// In front of a kind's own fields.
void AddTypeMeta(Value& properties) {
  Value api_version = Scalar("string");
  api_version.Set("description", "Group and version of the schema that this object is written in.");
  Value kind = Scalar("string");
  kind.Set("description", "What the object is.");
  properties.Set("apiVersion", std::move(api_version));
  properties.Set("kind", std::move(kind));
}

}  // namespace

Value GroupVersionKindValue(std::string_view group,
                            std::string_view version,
                            std::string_view kind) {
  Value value = Value::Object();
  value.Set("group", group);
  value.Set("kind", kind);
  value.Set("version", version);
  return value;
}

Value SchemaSet::Ref(std::string_view name) const {
  Value ref = Value::Object();
  const std::string_view prefix =
      version_ == OpenApiVersion::kV2 ? "#/definitions/" : "#/components/schemas/";
  ref.Set("$ref", std::string(prefix) + std::string(name));
  return ref;
}

Value SchemaSet::NamedRef(std::string_view name,
                          std::string_view type,
                          std::string_view format,
                          std::string_view doc) {
  if (!definitions_.contains(name)) {
    Value schema = Scalar(type, format);
    schema.Set("description", doc);
    AddDefinition(name, std::move(schema));
  }
  return Ref(name);
}

Value SchemaSet::SchemaOf(const TypeInfo& type) {
  switch (type.kind) {
    case TypeKind::kBool: return Scalar("boolean");
    case TypeKind::kInt32: return Scalar("integer", "int32");
    case TypeKind::kInt64: return Scalar("integer", "int64");
    case TypeKind::kDouble: return Scalar("number", "double");
    case TypeKind::kString: return Scalar("string");
    case TypeKind::kBase64: return Scalar("string", "byte");
    case TypeKind::kIntOrString: return Scalar("string", "int-or-string");
    case TypeKind::kTime:
      return NamedRef(kTime, "string", "date-time", "A time, as RFC 3339 writes it.");
    case TypeKind::kMicroTime:
      return NamedRef(
          kMicroTime, "string", "date-time", "A time with microseconds, as RFC 3339 writes it.");
    case TypeKind::kQuantity:
      return NamedRef(kQuantity, "string", "", "An amount with a unit, such as 500m, 4 or 16Gi.");
    case TypeKind::kIp: return NamedRef(kIp, "string", "ip", "An IPv4 or IPv6 address.");
    case TypeKind::kIpPrefix:
      return NamedRef(kIpPrefix, "string", "ip-prefix", "An IPv4 or IPv6 network.");
    case TypeKind::kValue:
    case TypeKind::kRawJson: return Value::Object();
    case TypeKind::kOptional: return SchemaOf(*type.element);
    case TypeKind::kList: {
      Value schema = Scalar("array");
      schema.Set("items", SchemaOf(*type.element));
      return schema;
    }
    case TypeKind::kMap: {
      Value schema = Scalar("object");
      schema.Set("additionalProperties", SchemaOf(*type.element));
      return schema;
    }
    case TypeKind::kStruct: AddStruct(type); return Ref(type.name);
  }
  return Value::Object();
}

Value SchemaSet::PropertyOf(const Field& field) {
  Value schema = SchemaOf(*field.type);
  if (schema.Find("$ref") != nullptr && version_ == OpenApiVersion::kV3) {
    // Nothing may stand beside a $ref in v3.
    Value wrapped = Value::Object();
    std::vector<Value> all;
    all.push_back(std::move(schema));
    wrapped.Set("allOf", Value::Array(std::move(all)));
    schema = std::move(wrapped);
  }
  schema.Set("description", field.doc);
  if (!field.options.format.empty()) schema.Set("format", field.options.format);
  if (!field.options.fallback.empty()) {
    if (auto value = ParseJson(field.options.fallback); value.ok())
      schema.Set("default", *std::move(value));
  }
  if (Unwrapped(*field.type).kind == TypeKind::kList) {
    AddEnum(field.options, *schema.Find("items"));
    AddListExtensions(field, schema);
  } else {
    AddEnum(field.options, schema);
  }
  return schema;
}

void SchemaSet::AddProperties(const TypeInfo& type,
                              Value& properties,
                              std::vector<Value>& required) {
  for (const auto& field : type.fields) {
    if (field.options.inlined) {
      AddProperties(Unwrapped(*field.type), properties, required);
      continue;
    }
    properties.Set(field.name, PropertyOf(field));
    if (field.options.required || field.options.always) required.emplace_back(field.name);
  }
}

Value SchemaSet::StructSchema(const TypeInfo& type) {
  Value schema = Value::Object();
  schema.Set("description", type.doc);
  schema.Set("type", "object");
  Value properties = Value::Object();
  std::vector<Value> required;
  AddProperties(type, properties, required);
  schema.Set("properties", std::move(properties));
  if (!required.empty()) schema.Set("required", Value::Array(std::move(required)));
  if (type.atomic) schema.Set("x-kubernetes-map-type", "atomic");
  return schema;
}

void SchemaSet::AddStruct(const TypeInfo& type) {
  if (definitions_.contains(type.name)) return;
  definitions_.emplace(std::string(type.name), Value());  // stands in, so that a cycle ends here
  Value schema = StructSchema(type);
  definitions_.insert_or_assign(std::string(type.name), std::move(schema));
}

void SchemaSet::AddDefinition(std::string_view name, Value schema) {
  definitions_.insert_or_assign(std::string(name), std::move(schema));
}

void SchemaSet::AddKind(const KindInfo& kind, std::string_view group) {
  const std::string name(kind.type->name);
  const bool is_new = !definitions_.contains(name);
  AddStruct(*kind.type);
  Value& schema = definitions_.find(name)->second;
  if (is_new) {
    Value properties = Value::Object();
    AddTypeMeta(properties);
    for (auto& member : schema.Find("properties")->members())
      properties.Set(member.key, std::move(member.value));
    schema.Set("properties", std::move(properties));
  }
  AddGroupVersionKind(group, kind, std::string(kind.kind), schema);
  if (kind.storage == Storage::kReview) return;

  const std::string list_name = name + "List";
  if (is_new) {
    Value list = Scalar("object");
    list.Set("description", "A list of " + std::string(kind.plural) + ".");
    Value properties = Value::Object();
    AddTypeMeta(properties);
    Value items = Scalar("array");
    items.Set("items", Ref(name));
    properties.Set("items", std::move(items));
    properties.Set("metadata", NamedRef(kListMeta, "object", "", "What every list has."));
    list.Set("properties", std::move(properties));
    list.Set("required", Value::Array({Value("items")}));
    AddDefinition(list_name, std::move(list));
  }
  AddGroupVersionKind(
      group, kind, std::string(kind.kind) + "List", definitions_.find(list_name)->second);
}

Value SchemaSet::Take() {
  Value all = Value::Object();
  for (auto& [name, schema] : definitions_) all.Set(name, std::move(schema));
  definitions_.clear();
  return all;
}

}  // namespace berth::meta
