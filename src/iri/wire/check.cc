// SPDX-License-Identifier: Apache-2.0
// One walk over any message: every field that there is or will be is checked, also those that
// nobody thought of.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "iri/wire/wire.h"

namespace berth::iri {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

Status Bad(const FieldDescriptor& field, const std::string& problem) {
  return BadRequest("field " + field.full_name() + ": " + problem);
}

Status CheckText(const FieldDescriptor& field, const std::string& text) {
  if (field.type() == FieldDescriptor::TYPE_BYTES) {
    if (text.size() <= kSecretBytesMax) return OkStatus();
    return Bad(field,
               std::to_string(text.size()) + " bytes, at most " + std::to_string(kSecretBytesMax) +
                   " are allowed");
  }
  if (text.size() > kTextBytesMax) {
    return Bad(field,
               std::to_string(text.size()) + " bytes, at most " + std::to_string(kTextBytesMax) +
                   " are allowed");
  }
  if (text.find('\0') != std::string::npos) return Bad(field, "contains a NUL character");
  if (!IsValidUtf8(text)) return Bad(field, "is not valid UTF-8");
  return OkStatus();
}

Status CheckNumber(const FieldDescriptor& field, int64_t number) {
  if (number >= 0) return OkStatus();
  return Bad(field, std::to_string(number) + " is negative");
}

Status CheckOne(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckText(field, reflection.GetStringReference(message, &field, &scratch));
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckNumber(field, reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckMessage(reflection.GetMessage(message, &field));
    default: return OkStatus();
  }
}

Status CheckRepeated(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  if (size > kPartsMax) {
    return Bad(
        field,
        std::to_string(size) + " parts, at most " + std::to_string(kPartsMax) + " are allowed");
  }
  std::string scratch;
  for (int i = 0; i < size; ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      TRY_STATUS(
          CheckText(field, reflection.GetRepeatedStringReference(message, &field, i, &scratch)));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      TRY_STATUS(CheckMessage(reflection.GetRepeatedMessage(message, &field, i)));
    }
  }
  return OkStatus();
}

}  // namespace

// The interface's messages do not contain themselves: the depth is that of the definitions.
Status CheckMessage(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    TRY_STATUS(field->is_repeated() ? CheckRepeated(message, *field) : CheckOne(message, *field));
  }
  return OkStatus();
}

}  // namespace berth::iri
