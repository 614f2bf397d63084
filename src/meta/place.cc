// SPDX-License-Identifier: Apache-2.0
#include "meta/internal/place.h"

#include "base/strings.h"

namespace berth::meta::internal {

std::string Place::ToString() const {
  std::string out = parent == nullptr ? std::string() : parent->ToString();
  switch (step) {
    case Step::kRoot: break;
    case Step::kField:
      if (!out.empty()) out += '.';
      out += Printable(name);
      break;
    case Step::kIndex: out += "[" + std::to_string(index) + "]"; break;
    case Step::kKey: out += "[" + Printable(name) + "]"; break;
  }
  return out;
}

}  // namespace berth::meta::internal
