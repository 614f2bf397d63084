// SPDX-License-Identifier: Apache-2.0
#include "meta/openapi/gnostic.h"

#include <cstdint>

#include "meta/json.h"

namespace berth::meta {
namespace {

// The few things of protobuf's wire format that are needed: strings, booleans and messages, in that
// order of wire type 2, 0, 2.
class Message {
 public:
  void String(uint32_t field, std::string_view text) {
    Tag(field, 2);
    Number(text.size());
    bytes_ += text;
  }
  void Bool(uint32_t field, bool value) {
    if (!value) return;
    Tag(field, 0);
    Number(1);
  }
  void Nested(uint32_t field, const Message& message) { String(field, message.bytes_); }
  std::string Take() { return std::move(bytes_); }

 private:
  void Tag(uint32_t field, uint32_t wire_type) { Number(field << 3 | wire_type); }
  void Number(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
    bytes_ += static_cast<char>(number);
  }
  std::string bytes_;
};

void CopyString(const Value& from, std::string_view key, uint32_t field, Message& to) {
  const Value* value = from.Find(key);
  if (value != nullptr && value->is_string() && !value->as_string().empty())
    to.String(field, value->as_string());
}

void CopyStrings(const Value& from, std::string_view key, uint32_t field, Message& to) {
  const Value* list = from.Find(key);
  if (list == nullptr) return;
  for (const auto& item : list->items()) to.String(field, item.as_string());
}

void CopyBool(const Value& from, std::string_view key, uint32_t field, Message& to) {
  const Value* value = from.Find(key);
  if (value != nullptr) to.Bool(field, value->as_bool());
}

// Any {value = 1, yaml = 2}: JSON is YAML.
Message AnyOf(const Value& value) {
  Message any;
  any.String(2, WriteJson(value));
  return any;
}

// NamedX {name = 1, value = 2}.
Message Named(std::string_view name, const Message& value) {
  Message named;
  named.String(1, name);
  named.Nested(2, value);
  return named;
}

void CopyExtensions(const Value& from, uint32_t field, Message& to) {
  for (const auto& member : from.members()) {
    if (member.key.starts_with("x-")) to.Nested(field, Named(member.key, AnyOf(member.value)));
  }
}

Message SchemaMessage(const Value& schema) {
  Message message;
  CopyString(schema, "$ref", 1, message);
  CopyString(schema, "format", 2, message);
  CopyString(schema, "description", 4, message);
  if (const Value* fallback = schema.Find("default")) message.Nested(5, AnyOf(*fallback));
  CopyStrings(schema, "required", 19, message);
  if (const Value* values = schema.Find("enum")) {
    for (const auto& value : values->items()) message.Nested(20, AnyOf(value));
  }
  if (const Value* additional = schema.Find("additionalProperties")) {
    Message item;
    item.Nested(1, SchemaMessage(*additional));
    message.Nested(21, item);
  }
  if (const Value* type = schema.Find("type")) {
    Message item;
    item.String(1, type->as_string());
    message.Nested(22, item);
  }
  if (const Value* items = schema.Find("items")) {
    Message item;
    item.Nested(1, SchemaMessage(*items));
    message.Nested(23, item);
  }
  if (const Value* properties = schema.Find("properties")) {
    Message item;
    for (const auto& member : properties->members())
      item.Nested(1, Named(member.key, SchemaMessage(member.value)));
    message.Nested(25, item);
  }
  CopyExtensions(schema, 31, message);
  return message;
}

// ParametersItem {parameter = 1}; Parameter {body_parameter = 1, non_body_parameter = 2}; there,
// query is 3, path is 4.
Message ParameterMessage(const Value& parameter) {
  const auto place = parameter.GetString({"in"});
  Message choice;
  if (place == "body") {
    Message body;
    CopyString(parameter, "description", 1, body);
    CopyString(parameter, "name", 2, body);
    CopyString(parameter, "in", 3, body);
    CopyBool(parameter, "required", 4, body);
    body.Nested(5, SchemaMessage(*parameter.Find("schema")));
    choice.Nested(1, body);
  } else {
    const bool in_query = place == "query";
    Message described;
    CopyBool(parameter, "required", 1, described);
    CopyString(parameter, "in", 2, described);
    CopyString(parameter, "description", 3, described);
    CopyString(parameter, "name", 4, described);
    CopyString(parameter, "type", in_query ? 6 : 5, described);
    Message non_body;
    non_body.Nested(in_query ? 3 : 4, described);
    choice.Nested(2, non_body);
  }
  Message item;
  item.Nested(1, choice);
  return item;
}

void CopyParameters(const Value& from, uint32_t field, Message& to) {
  const Value* parameters = from.Find("parameters");
  if (parameters == nullptr) return;
  for (const auto& parameter : parameters->items()) to.Nested(field, ParameterMessage(parameter));
}

Message ResponsesMessage(const Value& responses) {
  Message message;
  for (const auto& member : responses.members()) {
    Message schema_item;
    schema_item.Nested(1, SchemaMessage(*member.value.Find("schema")));
    Message response;
    CopyString(member.value, "description", 1, response);
    response.Nested(2, schema_item);
    Message value;
    value.Nested(1, response);
    message.Nested(1, Named(member.key, value));
  }
  return message;
}

Message OperationMessage(const Value& operation) {
  Message message;
  CopyString(operation, "operationId", 5, message);
  CopyStrings(operation, "consumes", 7, message);
  CopyParameters(operation, 8, message);
  message.Nested(9, ResponsesMessage(*operation.Find("responses")));
  CopyExtensions(operation, 13, message);
  return message;
}

Message PathItemMessage(const Value& item) {
  struct Method {
    std::string_view name;
    uint32_t field;
  };
  constexpr Method kMethods[] = {{"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  Message message;
  for (const auto& method : kMethods) {
    if (const Value* operation = item.Find(method.name))
      message.Nested(method.field, OperationMessage(*operation));
  }
  CopyParameters(item, 9, message);
  return message;
}

}  // namespace

std::string ToGnostic(const Value& document) {
  Message message;
  CopyString(document, "swagger", 1, message);
  Message info;
  CopyString(*document.Find("info"), "title", 1, info);
  CopyString(*document.Find("info"), "version", 2, info);
  message.Nested(2, info);
  Message paths;
  for (const auto& member : document.Find("paths")->members()) {
    paths.Nested(2, Named(member.key, PathItemMessage(member.value)));
  }
  message.Nested(8, paths);
  Message definitions;
  for (const auto& member : document.Find("definitions")->members()) {
    definitions.Nested(1, Named(member.key, SchemaMessage(member.value)));
  }
  message.Nested(9, definitions);
  return message.Take();
}

}  // namespace berth::meta
