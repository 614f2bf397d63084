// SPDX-License-Identifier: Apache-2.0
// What absent fields mean: FieldOptions::fallback everywhere in the tree, then the kind's own
// set_defaults. Idempotent.
#pragma once

#include "meta/object.h"
#include "meta/type.h"

namespace berth::meta {

void SetDefaults(Object& object);

// Only the fallbacks: inside structs, lists, maps and the optionals that are there.
void ApplyFallbacks(const TypeInfo& type, void* value);

}  // namespace berth::meta
