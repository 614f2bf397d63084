// SPDX-License-Identifier: Apache-2.0
// HostDrain empties the machine pools of hosts that leave with a drain: machines and reservations
// are asked to leave, those that are tied to the host stay, and when nobody else is left the pool
// says that its drain is over.
//
//   drain-requested ── machines asked, all at once ──► left or staying ── reservations, the same
//   ──► condition Drained, then drain-done
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/leaving/leaver.h"
#include "controller/pool_guests/pool_guests.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class HostDrain final : private Reconciler {
 public:
  // Everything outlives the controller.
  HostDrain(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);
  ~HostDrain() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return guests_.idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;
  // Pools that are being emptied.
  size_t watched() const { return guests_.size(); }

 private:
  // What is on one pool.
  class Guests;
  // The drain of one pool, as far as a round goes.
  struct Order {
    std::string pool;
    std::string pool_uid;
    std::string mode;     // status.agent.mode
    std::string request;  // kDrainRequestedAnnotation
  };

  // Keys are names of pools.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string pool) override;
  // True once nobody of this kind is left but who stays.
  rt::Task<Result<bool>> SendAway(Order order, const meta::KindInfo* kind);
  rt::Task<Status> Finish(Order order);
  rt::Task<Status> SayDrained(Order order, std::vector<std::string> staying);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder events_;
  Leaver leaver_;
  PoolGuests<Guests> guests_;
};

}  // namespace berth::controller
