// SPDX-License-Identifier: Apache-2.0
// All servers of one store have one certificate authority: hosts and users know it, whichever
// server they reach. Its key lies in the store beside the objects, where the API does not look, and
// encrypted as Secrets are (sealed_server_store.h); and in each server's folder, mode 0600.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "pki/certificate_authority.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

inline constexpr std::string_view kAuthorityKey = "/guard/authority";

// Afterwards the folder has the store's authority. The first server of a store brings its own, or
// makes one if it may; NotFound if it may not. Of two states of one authority the later one is
// taken. Conflict if the folder has another one: it is left alone.
rt::Task<Status> ShareAuthority(store::Store* store,
                                std::string folder,
                                WallTime now,
                                pki::NoAuthority none = pki::NoAuthority::kMakesOne);

// Whether ShareAuthority() with kIsRefused has one to take or to bring: NotFound if neither store
// nor folder has one. Writes nothing into the store, whose values need not be readable.
rt::Task<Status> CheckSharedAuthority(store::Store* store, std::string folder, WallTime now);

}  // namespace berth::app
