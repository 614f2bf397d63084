// SPDX-License-Identifier: Apache-2.0
// In-use protection (PROTOCOL 4.6): whether a machine uses what is to be deleted, or a volume is
// being made of it. The deletion itself looks and marks the object, so objects that nobody deletes
// cost nothing; whoever deletes it again, as controller/in_use does, looks again.
#pragma once

#include <string>

#include "apiserver/cache/watch_cache.h"
#include "meta/object.h"

namespace berth::apiserver {

// Volumes, network interfaces, networks and secrets. Classes carry their finalizer all the time and
// are controller/class_protection's.
bool IsKeptWhileUsed(const meta::KindInfo& kind);

// Who uses the object, "machine web" or "volume copy", as far as the cache knows; "" if nobody
// does. A machine that is gone (apis::IsGone) uses nothing. REQUIRES:
// IsKeptWhileUsed(object.kind()).
std::string UserOf(const WatchCache& cache, const meta::Object& object);

// Writes into a deleted object that it waits, and for whom; `user` "": that it does not.
void MarkUsed(meta::Object& object, const std::string& user);

}  // namespace berth::apiserver
