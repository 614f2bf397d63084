// SPDX-License-Identifier: Apache-2.0
// InUse ends the wait of deleted objects that were in use: it asks for their deletion again until
// nobody uses them any more, and tells people meanwhile who does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class InUse final : private Reconciler {
 public:
  // Everything outlives the controller.
  InUse(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);
  ~InUse() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;

 private:
  // Follows one kind and remembers what of it waits.
  class Follower;
  struct Waiting {
    std::string uid;
    std::string said;  // the user that people were told of
    Time said_at;
  };

  // Keys are "<index of the follower>/<namespace>/<name>".
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  void Tell(const meta::Object& object, Waiting& waiting);
  // How long an object waits for its next look.
  Duration Pause() const;

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder events_;
  Runner runner_;
  std::map<std::string, Waiting> waiting_;  // by key
  std::vector<std::unique_ptr<Follower>> followers_;
};

}  // namespace berth::controller
