// SPDX-License-Identifier: Apache-2.0
// Kubernetes' protobuf form of objects, for reading only: Go clients send it for the kinds that
// Kubernetes itself has. There are no message classes: the bytes go straight into described structs
// (meta/type.h), led by a table of field numbers per message (messages.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "meta/json.h"
#include "meta/type.h"

namespace berth::meta {

inline constexpr std::string_view kKubernetesProtoMediaType = "application/vnd.kubernetes.protobuf";

// What a request may carry, as for JSON.
inline constexpr size_t kMaxProtoBytes = kMaxJsonBytes;
// Messages inside messages; map entries and times count.
inline constexpr size_t kMaxProtoDepth = 32;
// List items and map entries of one body together: an empty item takes two bytes on the wire and
// hundreds in memory.
inline constexpr size_t kMaxProtoItems = 100'000;

// Whether the struct has a protobuf form.
bool HasKubernetesProto(const TypeInfo& type);

// Decodes a body, its envelope included, into `out`, a new value of `type`. `type_meta` (may be
// null) gets what the envelope says, as soon as that is known: it is set even if the object cannot
// be read. Unknown fields are skipped. BadRequest with the byte for whatever is malformed, cut off,
// too deep or too large; UnsupportedMediaType for a type without a protobuf form. After an error
// `out` holds something valid but unspecified.
Status DecodeKubernetesProto(std::string_view body,
                             const TypeInfo& type,
                             void* out,
                             TypeMeta* type_meta);

}  // namespace berth::meta
