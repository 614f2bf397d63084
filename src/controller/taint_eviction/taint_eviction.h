// SPDX-License-Identifier: Apache-2.0
// TaintEviction asks machines to leave pools whose NoExecute taints they do not tolerate, or not
// for ever. Their hosts stop them, and they look for another place, as in a drain.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/taints.h"
#include "base/result.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "client/release/release.h"
#include "controller/leaving/leaver.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::controller {

class TaintEviction final : private Reconciler {
 public:
  // Everything outlives the controller.
  TaintEviction(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);
  ~TaintEviction() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;
  // Pools whose machines are followed.
  size_t watched() const { return guests_.size(); }

 private:
  // The machines of one tainted pool.
  class Guests;

  void OnPool(const meta::Object* before, const meta::Object* now);
  rt::Task<Status> CloseGuests(std::unique_ptr<Guests> guests);
  // Keys are names of pools.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string pool) override;
  rt::Task<Status> Leave(client::ReleaseRequest request, std::string pool_mode);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder events_;
  Leaver leaver_;
  Runner runner_;
  client::Informer pools_;
  rt::TaskScope scope_;
  std::map<std::string, std::unique_ptr<Guests>> guests_;  // by name of the pool
};

}  // namespace berth::controller
