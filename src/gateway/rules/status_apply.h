// SPDX-License-Identifier: Apache-2.0
// What a host's report makes of an object's status (G3), pure. A report cannot touch anything but
// the status, and of it nothing that is somebody else's.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gateway/rules/words.h"
#include "meta/object.h"

namespace berth::gateway {

// Whether the report may be written: it speaks of this placement, made by the host that has it.
// `pool_uid` is of the pool that the session has and the object is bound to.
bool MayReport(const meta::Object& object,
               const std::string& pool_uid,
               uint64_t placement,
               uint64_t report_incarnation,
               uint64_t incarnation);

// The Secret that holds what a host says about the access to a volume. Its name is the server's
// choice and never a user's.
std::string AccessSecretName(const std::string& volume_uid);

// True if the status changed. REQUIRES: apis::IsPlaceable(object.kind()). A report of another kind,
// or with words that the API does not know, changes nothing in that part.
bool ApplyReport(const agent::ObjectStatus& report, WallTime now, meta::Object& object);

// Entries for the access Secret, cut to their limits; empty if there are none.
std::map<std::string, std::string> AccessSecretData(const agent::ObjectStatus& report);

}  // namespace berth::gateway
