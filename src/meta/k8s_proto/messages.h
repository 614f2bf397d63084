// SPDX-License-Identifier: Apache-2.0
// Which number each field of a Kubernetes message has on the wire. How its bytes are read follows
// from the type of the struct's field.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace berth::meta {

struct ProtoField {
  uint32_t number = 0;
  std::string_view name;  // JSON
};

struct ProtoMessage {
  std::string_view name;  // TypeInfo::name
  std::span<const ProtoField> fields;
};

// In order of their names.
std::span<const ProtoMessage> ProtoMessages();
// Null if there is none of this name.
const ProtoMessage* FindProtoMessage(std::string_view name);

}  // namespace berth::meta
