// SPDX-License-Identifier: Apache-2.0
// What can be said about any object from its description alone: required fields, allowed values,
// lengths of texts, metadata. The kind's own rules follow.
#pragma once

#include "meta/field_errors.h"
#include "meta/object.h"
#include "meta/type.h"

namespace berth::meta {

// Metadata, fields, then KindInfo::validate. For create and update alike.
void ValidateObject(const Object& object, FieldErrors& errors);

// What an update may not change in metadata. Adding a finalizer to an object that is being deleted
// is forbidden.
void ValidateMetadataUpdate(const ObjectMeta& now, const ObjectMeta& before, FieldErrors& errors);

void ValidateMetadata(const KindInfo& kind, const ObjectMeta& metadata, FieldErrors& errors);
// Required fields, allowed values and lengths of texts (FieldOptions::longest), everywhere below
// `value`. Bytes in base64 and raw JSON are left to the kind's own rules.
void ValidateFields(const TypeInfo& type, const void* value, FieldErrors& errors);

}  // namespace berth::meta
