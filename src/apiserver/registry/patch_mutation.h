// SPDX-License-Identifier: Apache-2.0
// A patch as a Mutation: the present object becomes a JSON tree, is patched, and is decoded again.
#pragma once

#include <string>

#include "apiserver/registry.h"
#include "base/result.h"
#include "client/client.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// BadRequest if the patch itself is malformed. The scheme outlives the mutation.
Result<Mutation> MakePatch(const meta::Scheme& scheme,
                           const meta::KindInfo& kind,
                           client::PatchType type,
                           const std::string& body);

}  // namespace berth::apiserver
