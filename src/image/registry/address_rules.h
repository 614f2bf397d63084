// SPDX-License-Identifier: Apache-2.0
// Which hosts may be asked for images. Who names an image names a host that every host of the fleet
// then talks to: only to what anybody can reach, and to what the operator has named. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace berth::image {

// Whether an address is one of the internet: not of this host, its links or a private network.
bool IsPublicAddress(std::string_view address);

struct AddressRules {
  // Registries of the operator's own networks: "registry.example:5000".
  std::set<std::string, std::less<>> trusted;

  // Forbidden names host and address. `host` with its port, unless that is 443.
  Status Check(std::string_view host, std::string_view address) const;
};

}  // namespace berth::image
