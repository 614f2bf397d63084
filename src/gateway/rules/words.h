// SPDX-License-Identifier: Apache-2.0
// The messages of agent.proto in the words of the fleet, and back. What comes from a host is cut to
// its limits here: nothing beyond this file sees a name, an amount or a text as a host wrote it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apis/placement.h"
#include "berth/agent/v1/agent.pb.h"
#include "fleet/fleet.h"

namespace berth::gateway {

namespace agent = berth::agent::v1;
using ProtoAmounts = google::protobuf::Map<std::string, int64_t>;

// Without control characters, and at most `max` bytes.
std::string CleanText(std::string_view text, size_t max);

// Dimensions that can be names of resources, amounts that are not negative; the rest is left out.
fleet::Vector FromProto(const ProtoAmounts& amounts);
void ToProto(const fleet::Vector& amounts, ProtoAmounts& out);

agent::Offer ToProto(const fleet::Offer& offer);
fleet::Answer FromProto(const agent::Answer& answer);
// Capacity is capped by the pool's limits.
fleet::PoolFacts FromProto(const std::string& pool_uid,
                           const agent::Facts& facts,
                           const apis::Amounts& limits);
fleet::Statistics FromProto(const agent::Statistics& statistics, WallTime now);

// Keys and values of what a host says of itself, bounded in number and length.
std::map<std::string, std::string> CleanFacts(
    const google::protobuf::Map<std::string, std::string>& facts);

}  // namespace berth::gateway
