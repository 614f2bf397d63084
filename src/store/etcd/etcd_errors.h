// SPDX-License-Identifier: Apache-2.0
// etcd's errors in our words. etcd tells its errors apart by their text; the gRPC code alone says
// too little.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace berth::store {

enum class EtcdFault : uint8_t {
  kFinal,    // it will not get better by asking again
  kToken,    // nothing happened: the token is not good any more, authenticate again
  kRefused,  // nothing happened: this member has no leader at the moment
  kBusy,     // it may pass; this member is as good as another
  kMember,   // it may pass; another member is more likely to help
};
EtcdFault FaultOf(const Status& status);

// The same error as a store says it: Expired, BadRequest, NotFound, TooManyRequests, Forbidden,
// Unauthorized or Unavailable, in words that say what to do where there is something to do.
Status ExplainEtcd(const Status& status);

// True for "etcd's disk quota is used up".
bool IsOutOfSpace(const Status& status);

}  // namespace berth::store
