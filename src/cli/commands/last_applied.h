// SPDX-License-Identifier: Apache-2.0
// The annotation in which apply remembers a manifest: the same as kubectl's, byte for byte, so that
// the two can be used in turn.
#pragma once

#include "meta/value.h"

namespace berth::cli {

// The manifest with itself in its annotation.
meta::Value WithLastApplied(const meta::Value& manifest);
// The object without it.
void ForgetLastApplied(meta::Value& object);
bool HasLastApplied(const meta::Value& object);
// What was applied last; an empty object if nothing was, or if it cannot be read.
meta::Value LastApplied(const meta::Value& object);

}  // namespace berth::cli
