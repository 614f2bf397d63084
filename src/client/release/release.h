// SPDX-License-Identifier: Apache-2.0
// Asking an object to leave its pool: status.placement.release and the condition Released, in one
// write. The gateway tells the host, which stops it and says Gone; then it is unbound and looks for
// another place.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "meta/kind.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::client {

struct ReleaseRequest {
  const meta::KindInfo* kind = nullptr;
  ObjectKey key;
  std::string uid;
  int64_t placement = 0;  // status.placement.epoch that is meant
  std::string reason;     // apis::core::kRelease...
  std::string message;    // a sentence, of the condition
};

enum class ReleaseOutcome : uint8_t {
  kAsked,         // written now
  kLeavesAlready  // nothing to do: it is gone, elsewhere, being deleted, or asked before
};

// Conflicts are tried again a few times.
rt::Task<Result<ReleaseOutcome>> AskToLeave(rt::Loop& loop, Client& client, ReleaseRequest request);

// Says why an object stays on a pool that it was to leave: condition Released=False. No write if
// the object says so already, or is not there any more.
rt::Task<Status> SayItStays(rt::Loop& loop, Client& client, ReleaseRequest request);

}  // namespace berth::client
