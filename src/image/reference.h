// SPDX-License-Identifier: Apache-2.0
// What names an image: [REGISTRY/]NAME[:TAG][@sha256:DIGEST]. Pure.
//
// As everywhere, the first part of a name is a registry if it could be a host: it has a dot or a
// port, or is "localhost". Without one the image is in a folder of this host.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::image {

struct Reference {
  std::string registry = {};  // "registry.example:5000"; "" for a folder of this host
  std::string name;           // "os/debian": parts that are no path out of a folder
  std::string tag;            // "12"; "" for none
  std::string digest;         // 64 hexadecimal characters; "" for none
  bool operator==(const Reference&) const = default;
};

// BadRequest says which part is wrong.
Result<Reference> ParseReference(std::string_view text);
// The same as text again.
std::string ToText(const Reference& reference);

// The hexadecimal part of "sha256:..."; "" if it is anything else.
std::string Sha256Of(std::string_view digest);

}  // namespace berth::image
