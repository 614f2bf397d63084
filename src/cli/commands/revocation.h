// SPDX-License-Identifier: Apache-2.0
// Entering somebody into a list of revocations: a ConfigMap of berth-system whose entries say until
// when what was issued is void.
#pragma once

#include <string>

#include "base/status.h"

namespace berth::cli {

class Session;

// Everything until now, by the server's clock, is void for `entry` ("host.rack-1"). The record is
// made if it is not there.
Status EnterRevocation(Session& session, const std::string& record, const std::string& entry);

}  // namespace berth::cli
