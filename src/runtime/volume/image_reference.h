// SPDX-License-Identifier: Apache-2.0
// What names an image: NAME[:TAG][@sha256:DIGEST]. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::runtime {

struct ImageReference {
  std::string name;    // "os/debian": parts that are no path out of a folder
  std::string tag;     // "12"; "" for none
  std::string digest;  // 64 hexadecimal characters; "" for none
  bool operator==(const ImageReference&) const = default;
};

// BadRequest says which part is wrong.
Result<ImageReference> ParseImageReference(std::string_view text);

// The hexadecimal part of "sha256:..."; "" if it is anything else.
std::string Sha256Of(std::string_view digest);

}  // namespace berth::runtime
