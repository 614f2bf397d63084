// SPDX-License-Identifier: Apache-2.0
// Changing an object's finalizers and owners as a controller does: on the newest state, and only if
// it is still the same object.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "rt/task.h"

namespace berth::controller {

// Set by the server for the garbage collector, which works them off.
constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// Reads the object, lets `change` edit its metadata, writes it on the state read. Ok without a
// write if `change` says false, or if the object is gone or has another UID. Conflict if someone
// was faster.
rt::Task<Status> EditMetadata(client::Client& client,
                              const meta::KindInfo& kind,
                              client::ObjectKey key,
                              std::string uid,
                              std::function<bool(meta::ObjectMeta&)> change);

rt::Task<Status> RemoveFinalizer(client::Client& client,
                                 const meta::KindInfo& kind,
                                 client::ObjectKey key,
                                 std::string uid,
                                 std::string finalizer);

bool HasFinalizer(const meta::ObjectMeta& metadata, std::string_view finalizer);

}  // namespace berth::controller
