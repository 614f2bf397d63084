// SPDX-License-Identifier: Apache-2.0
// What the hosts of a bench hold, by their own word: whatever was assigned to them and not taken
// away again. The API says where a machine should be; two hosts that hold it say that it is there
// twice.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::app {

using Holdings = std::map<std::string, std::vector<std::string>>;  // UID to hosts

// A file with a line for each UID and host; whoever reads it sees all of them or an earlier file.
// Its size is bounded by what hosts have room for: kBenchMachinesPerHost lines each.
Status WriteHoldings(const std::string& path, const Holdings& holdings);
Result<Holdings> ReadHoldings(const std::string& path);

}  // namespace berth::app
