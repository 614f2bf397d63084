// SPDX-License-Identifier: Apache-2.0
// A Leaver asks machines and reservations to leave their pool, or says why they stay.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "client/release/release.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

struct Departure {
  enum class Outcome : uint8_t {
    kAsked,          // its host stops it, and it looks for another place
    kLeavesAlready,  // it is gone, elsewhere, being deleted, or was asked before
    kStays
  } outcome = Outcome::kAsked;
  std::string tie;  // why it stays
};

class Leaver {
 public:
  // Everything outlives the leaver.
  Leaver(rt::Loop& loop, client::Client& client, client::EventRecorder& events)
      : loop_(loop), client_(client), events_(events) {}

  // `request.message` says why it has to go: "pool alpha has the taint fire:NoExecute". What comes
  // of it is added, in the condition Released and in an event. `pool_mode` is status.agent.mode.
  rt::Task<Result<Departure>> Ask(client::ReleaseRequest request, std::string pool_mode);

 private:
  rt::Task<Result<std::string>> FindTie(client::ReleaseRequest request, std::string pool_mode);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder& events_;
};

}  // namespace berth::controller
