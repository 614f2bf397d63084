// SPDX-License-Identifier: Apache-2.0
// TaintEviction asks machines to leave pools whose NoExecute taints they do not tolerate, or not
// for ever. Their hosts stop them, and they look for another place, as in a drain.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "client/release/release.h"
#include "controller/leaving/leaver.h"
#include "controller/pool_guests/pool_guests.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class TaintEviction final : private Reconciler {
 public:
  // Everything outlives the controller.
  TaintEviction(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);
  ~TaintEviction() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return guests_.idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;
  // Pools whose machines are followed.
  size_t watched() const { return guests_.size(); }

 private:
  // The machines of one tainted pool.
  class Guests;

  // Keys are names of pools.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string pool) override;
  rt::Task<Status> Leave(client::ReleaseRequest request, std::string pool_mode);

  rt::Loop& loop_;
  client::EventRecorder events_;
  Leaver leaver_;
  PoolGuests<Guests> guests_;
};

}  // namespace berth::controller
