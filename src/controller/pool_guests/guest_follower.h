// SPDX-License-Identifier: Apache-2.0
// A GuestFollower follows what is bound to one machine pool, kind by kind. What is kept of it is up
// to the class that derives from it.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/cache/health_report.h"
#include "client/cache/reflector.h"
#include "client/cache/work_queue.h"
#include "client/client.h"
#include "meta/kind.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::controller {

class GuestFollower {
 public:
  // Everything outlives the follower.
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::WorkQueue& queue;  // of names of pools
    std::string pool;
  };

  GuestFollower(const GuestFollower&) = delete;
  GuestFollower& operator=(const GuestFollower&) = delete;

  // The first list of each kind is complete.
  bool synced() const;
  void Report(std::string_view controller, client::HealthReport& report) const;
  // Awaited before the follower goes: no sink is told anything after it.
  rt::Task<Status> Close() { return scope_.Close(); }

 protected:
  explicit GuestFollower(Deps deps);
  ~GuestFollower() = default;

  // Brings the guests of this kind to `sink`, from now on.
  void Follow(const meta::KindInfo& kind, client::Sink& sink);
  // The pool is to be looked at.
  void Wake() { deps_.queue.Add(deps_.pool); }

 private:
  const Deps deps_;
  std::list<client::Reflector> reflectors_;
  rt::TaskScope scope_;
};

}  // namespace berth::controller
