// SPDX-License-Identifier: Apache-2.0
// The records of revocations: ConfigMaps of berth-system whose entries say until when what was
// issued is void.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "pki/revocation_list.h"

namespace berth::cli {

class Session;

// Everything until now, by the server's clock, is void for `entry` ("host.rack-1"). The record is
// made if it is not there.
Status EnterRevocation(Session& session, const std::string& record, const std::string& entry);

// BadRequest for a name that no record can hold.
Status CheckRevocable(const std::string& user);
// All certificates of the user until now are void.
Status RevokeUser(Session& session, const std::string& user);

// Everything that is revoked, of hosts and of users. Entries that revoke nothing are told as
// warnings.
Result<std::vector<pki::Revocation>> FetchRevocations(Session& session);

}  // namespace berth::cli
