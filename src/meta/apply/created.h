// SPDX-License-Identifier: Apache-2.0
// The fieldsV1 of a new object's creator, straight from the struct. It is what RecordUpdate finds
// between {} and the object; but most writes that are recorded are creations, and this costs about
// as much as encoding the object once.
#pragma once

#include "meta/type.h"

namespace berth::meta {

// Absent if there is nothing to own, or more than kMaxOwnedFields. REQUIRES: a kind's struct.
RawJson CreatedFields(const TypeInfo& type, const void* object);

}  // namespace berth::meta
