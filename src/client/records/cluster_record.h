// SPDX-License-Identifier: Apache-2.0
// The cluster's identity where everyone may read it: the record `cluster`. The server writes it at
// its start; whoever makes join tokens reads the incarnation, because a restore voids tokens that
// were made before.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/cluster.h"
#include "client/records/config_record.h"
#include "rt/task.h"

namespace berth::client {

inline constexpr std::string_view kClusterRecord = "cluster";

// "id", "incarnation", "starts".
RecordEntries FormatCluster(const ClusterIdentity& identity);
// BadRequest names the entry that cannot be read.
Result<ClusterIdentity> ParseCluster(const RecordEntries& entries);

// Idempotent.
rt::Task<Status> PublishCluster(Client& client, ClusterIdentity identity);

}  // namespace berth::client
