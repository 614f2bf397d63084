// SPDX-License-Identifier: Apache-2.0
// Who this cluster is, for those who remember things about it elsewhere: hosts.
#pragma once

#include <cstdint>
#include <string>

namespace berth::client {

struct ClusterIdentity {
  // A UUID, made once: runtime objects with another cluster's id are never touched.
  std::string id;
  // I: grows when history was rewound by a restore. Hosts compare it before anything else.
  uint64_t incarnation = 0;
  // How often a server was started on this store, this start included: the first part of session
  // numbers.
  uint64_t start = 0;
  // A restore has rewound the store, and not all of its hosts were heard since (client/rewound.h).
  bool is_rewound = false;
  bool operator==(const ClusterIdentity&) const = default;
};

}  // namespace berth::client
