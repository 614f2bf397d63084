// SPDX-License-Identifier: Apache-2.0
#include "meta/openapi/document.h"

#include <vector>

#include "meta/openapi/paths.h"
#include "meta/openapi/schema.h"

namespace berth::meta {
namespace {

constexpr std::string_view kMetaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1.";

Value StringProperty(std::string_view doc) {
  Value schema = Value::Object();
  schema.Set("type", "string");
  schema.Set("description", doc);
  return schema;
}

Value ObjectSchema(std::string_view doc, Value properties) {
  Value schema = Value::Object();
  schema.Set("description", doc);
  schema.Set("type", "object");
  if (!properties.members().empty()) schema.Set("properties", std::move(properties));
  return schema;
}

// What operations refer to besides the kinds.
void AddCommonDefinitions(SchemaSet& schemas) {
  Value list_meta = Value::Object();
  list_meta.Set("resourceVersion",
                StringProperty("Watch from here to see what changes after the list."));
  list_meta.Set("continue", StringProperty("Send it back to get the next page."));
  schemas.AddDefinition(std::string(kMetaPrefix) + "ListMeta",
                        ObjectSchema("What every list has.", std::move(list_meta)));
  schemas.AddDefinition(std::string(kMetaPrefix) + "Patch",
                        ObjectSchema("A change to an object.", Value::Object()));
  schemas.AddDefinition(std::string(kMetaPrefix) + "DeleteOptions",
                        ObjectSchema("How an object is deleted.", Value::Object()));
  schemas.AddDefinition(
      "dev.berth.api.v1alpha1.Binding",
      ObjectSchema("Objects that get their pools together or not at all.", Value::Object()));
  schemas.AddDefinition("dev.berth.api.v1alpha1.Unbinding",
                        ObjectSchema("Why an object loses its pool.", Value::Object()));
  schemas.AddDefinition(
      "dev.berth.api.v1alpha1.Usage",
      ObjectSchema("What of a pool or by a machine is promised, free and used.", Value::Object()));
  Value status = Value::Object();
  for (const auto* name : {"status", "message", "reason"})
    status.Set(name, StringProperty("See metav1.Status."));
  schemas.AddDefinition(std::string(kMetaPrefix) + "Status",
                        ObjectSchema("How a request ended.", std::move(status)));
}

Value Info(std::string_view version) {
  Value info = Value::Object();
  info.Set("title", "Berth");
  info.Set("version", version);
  return info;
}

}  // namespace

std::string OpenApiV3Path(const ServedGroup& served) {
  if (served.group.empty()) return "api/" + served.version;
  return "apis/" + served.group + '/' + served.version;
}

Value OpenApiV2(const Scheme& scheme, std::string_view version) {
  SchemaSet schemas(OpenApiVersion::kV2);
  AddCommonDefinitions(schemas);
  Value paths = Value::Object();
  for (const auto& served : scheme.groups()) {
    for (const KindInfo* kind : served.kinds) schemas.AddKind(*kind, served.group);
    AddPaths(served, OpenApiVersion::kV2, paths);
  }
  Value document = Value::Object();
  document.Set("swagger", "2.0");
  document.Set("info", Info(version));
  document.Set("paths", std::move(paths));
  document.Set("definitions", schemas.Take());
  return document;
}

Value OpenApiV3(const ServedGroup& served, std::string_view version) {
  SchemaSet schemas(OpenApiVersion::kV3);
  AddCommonDefinitions(schemas);
  for (const KindInfo* kind : served.kinds) schemas.AddKind(*kind, served.group);
  Value paths = Value::Object();
  AddPaths(served, OpenApiVersion::kV3, paths);
  Value components = Value::Object();
  components.Set("schemas", schemas.Take());
  Value document = Value::Object();
  document.Set("openapi", "3.0.0");
  document.Set("info", Info(version));
  document.Set("paths", std::move(paths));
  document.Set("components", std::move(components));
  return document;
}

}  // namespace berth::meta
