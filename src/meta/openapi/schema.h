// SPDX-License-Identifier: Apache-2.0
// JSON schemas of described structs, in the dialects of OpenAPI v2 and v3.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "meta/scheme.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

enum class OpenApiVersion : uint8_t { kV2, kV3 };

// Collects the definitions that a document needs: each struct once, with everything that it refers
// to.
class SchemaSet {
 public:
  explicit SchemaSet(OpenApiVersion version) : version_(version) {}

  // A kind and its list, under one group-version. Called again for an alias of the same kind, the
  // definition names both. Returns nothing: the names are KindDefinition(kind) and that with "List"
  // behind it.
  void AddKind(const KindInfo& kind, std::string_view group);
  // A struct that is no kind.
  void AddStruct(const TypeInfo& type);
  // A definition that no struct of ours describes.
  void AddDefinition(std::string_view name, Value schema);

  // {"$ref": "#/definitions/NAME"}.
  Value Ref(std::string_view name) const;
  // All definitions, sorted by name.
  Value Take();

 private:
  Value SchemaOf(const TypeInfo& type);
  Value PropertyOf(const Field& field);
  void AddProperties(const TypeInfo& type, Value& properties, std::vector<Value>& required);
  Value StructSchema(const TypeInfo& type);
  Value NamedRef(std::string_view name,
                 std::string_view type,
                 std::string_view format,
                 std::string_view doc);

  OpenApiVersion version_;
  std::map<std::string, Value, std::less<>> definitions_;
};

// {"group": ..., "kind": ..., "version": ...}
Value GroupVersionKindValue(std::string_view group,
                            std::string_view version,
                            std::string_view kind);

}  // namespace berth::meta
