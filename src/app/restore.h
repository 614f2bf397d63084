// SPDX-License-Identifier: Apache-2.0
// Restore puts a copy of a store, taken while its server stood still, in the place of the present
// one. History is rewound by it, so it begins a new incarnation: hosts keep what they run and take
// the lower placements of the copy for newer ones, and watches from before are told to list again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "pki/revocation_list.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::app {

struct RestoreOptions {
  std::string from;      // a copy of a data folder
  std::string data_dir;  // where the server will run
  // Since the copy was taken: void before anybody is served.
  std::vector<pki::Revocation> revoked = {};
};

struct Restored {
  uint64_t incarnation = 0;
  int64_t revision = 0;
  std::string set_aside;  // where the store before it is now; "" if there was none
};

// Refused while a server uses either folder. All or nothing: a failure at any moment leaves the
// present store in its place. Tokens are not restored: some may have been revoked since.
rt::Task<Result<Restored>> Restore(rt::Loop& loop, RestoreOptions options);

}  // namespace berth::app
