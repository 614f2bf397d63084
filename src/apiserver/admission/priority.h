// SPDX-License-Identifier: Apache-2.0
// Priority of machines: a class that is named becomes a number that stays. Pure.
#pragma once

#include "apiserver/admission/admission.h"
#include "base/status.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// A new machine that names a PriorityClass gets its value as spec.placement.priority, and keeps it.
// Invalid, with the field's path, if there is no such class, or a number is given that is not the
// class's. REQUIRES: object is a Machine.
Status ResolvePriority(const meta::Scheme& scheme,
                       const ObjectSource& source,
                       const meta::Object* before,
                       meta::Object& object);

// A new machine that names no class gets the one that says globalDefault, the least important of
// several. No effect on other kinds. Nobody needs a right for it, so it comes after the checks of
// rights.
void ApplyDefaultPriority(const ObjectSource& source, meta::Object& object);

// Refuses a second default class, and sets whose machines could not be made.
Status CheckPriority(const meta::Scheme& scheme,
                     const ObjectSource& source,
                     const meta::Object* before,
                     const meta::Object& object);

}  // namespace berth::apiserver
