// SPDX-License-Identifier: Apache-2.0
// From which registries the blobs of a shared layout came: LAYOUT/origins/DIGEST.REGISTRY, empty
// files. A digest is no secret, so that a blob is there lets nobody have it: who asks names a
// registry that has given it out before, and is asked again whether it would, or brings it himself.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "image/layout.h"
#include "image/manifest.h"

namespace berth::image {

// What a registry is called where its name could be anything: 16 characters.
std::string RegistryWord(std::string_view registry);

// Whether the whole blob is there. Blocks, like all here.
bool IsThere(const Layout& layout, const Descriptor& blob);
// Whether it is, and this registry has given it out.
bool IsFrom(const Layout& layout, const Descriptor& blob, std::string_view registry);
// REQUIRES: the blob came from there and has its digest.
Status NoteOrigin(const Layout& layout, const Descriptor& blob, std::string_view registry);

}  // namespace berth::image
