// SPDX-License-Identifier: Apache-2.0
// What a cluster knows of itself: the record `cluster`. Its id marks everything that hosts make for
// it; its incarnation grows when history is rewound (a restore); its starts are counted, so that
// sessions of a later server process are larger than all before.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/records/config_record.h"
#include "rt/task.h"

namespace berth::client {

inline constexpr std::string_view kClusterRecord = "cluster";

struct ClusterRecord {
  std::string id;  // a UID
  uint64_t incarnation = 1;
  uint64_t starts = 0;
  bool operator==(const ClusterRecord&) const = default;
};

// The error names the field.
Result<ClusterRecord> ParseClusterRecord(const RecordEntries& entries);
RecordEntries FormatClusterRecord(const ClusterRecord& record);

// Counts one start of a server, making the record if this is the first one. `new_id` is used then.
rt::Task<Result<ClusterRecord>> CountStart(Client& client, std::string new_id);
// After a restore: everything issued before is of an older history.
rt::Task<Result<ClusterRecord>> RaiseIncarnation(Client& client);

}  // namespace berth::client
