// SPDX-License-Identifier: Apache-2.0
// Our own small records lie in ConfigMaps of the namespace berth-system: plain clients can read
// them, and RBAC decides who may.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "rt/task.h"

namespace berth::client {

inline constexpr std::string_view kRecordNamespace = "berth-system";

using RecordEntries = std::map<std::string, std::string>;

// nullopt if there is none.
rt::Task<Result<std::optional<RecordEntries>>> ReadRecord(Client& client, std::string name);

// Lets `change` edit the newest entries (empty ones if the record does not exist) and writes them
// on the state read; tried again when someone was faster. Ok without a write if `change` says
// false. The entries as they are now.
rt::Task<Result<RecordEntries>> EditRecord(Client& client,
                                           std::string name,
                                           std::function<bool(RecordEntries&)> change);

}  // namespace berth::client
