// SPDX-License-Identifier: Apache-2.0
// What a copy of a store must not give back: a restore forgets what was revoked after the copy was
// taken. So tokens are not restored, and certificates that an operator lists are void before a
// server serves anybody.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pki/revocation_list.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

// Whether a join token or a user's token lies under this key.
bool IsToken(std::string_view key);
// Removes every one of them. For stores that nobody serves.
rt::Task<Status> VoidTokens(store::Store& store);

// The list (pki/revocation_list.h) in a file. Errors name the file and the line.
Result<std::vector<pki::Revocation>> ReadRevocationList(const std::string& path, WallTime now);

// Adds them to the records of revocations, which are made if they are not there; of two times the
// later one counts. BadRequest if a record becomes larger than an object may be. Idempotent; for
// stores that nobody serves.
rt::Task<Status> EnterRevocations(rt::Loop& loop,
                                  store::Store& store,
                                  std::vector<pki::Revocation> revocations);

}  // namespace berth::app
