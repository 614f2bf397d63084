// SPDX-License-Identifier: Apache-2.0
// Why a machine can be nowhere but on its host, looked up in the store.
#pragma once

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::client {

// In words for people, as apis::compute::HostTieOf has them; "" if nothing ties it. Reads the
// machine's volumes and their pools. REQUIRES: `machine` is a Machine.
rt::Task<Result<std::string>> FindHostTie(Client& client, meta::Object machine);

}  // namespace berth::client
