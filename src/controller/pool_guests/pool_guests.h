// SPDX-License-Identifier: Apache-2.0
// PoolGuests follows all machine pools, and what is on those that concern a controller, and has the
// controller look at a pool whenever it or its guests changed.
//
//   reason "" ── a reason ──► followed ── another reason ──► followed anew
//       ▲                        │
//       └── "", the pool is gone ┘
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apis/compute/machine_pool.h"
#include "base/result.h"
#include "client/cache/health_report.h"
#include "client/cache/informer.h"
#include "client/client.h"
#include "controller/pool_guests/guest_follower.h"
#include "controller/runner.h"
#include "rt/join_all.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::controller {

namespace internal {

// Of what a host reports, only who it is matters here. Whole, a pool is 8 KB.
void ForgetReports(meta::Object& pool);

}  // namespace internal

// Guests is a GuestFollower that is made of its Deps.
template <class Guests>
class PoolGuests {
 public:
  // Why the guests of a pool are followed; "" if they are not.
  using ReasonOf = std::string (*)(const meta::Object& pool);

  // `name` is a literal. Keys of the reconciler are names of pools. Everything outlives it.
  PoolGuests(rt::Loop& loop,
             client::Client& client,
             std::string_view name,
             Reconciler& reconciler,
             ReasonOf reason_of)
      : loop_(loop),
        client_(client),
        reason_of_(reason_of),
        runner_(loop, name, reconciler, 1),
        pools_(
            loop,
            client,
            apis::compute::kMachinePoolKind,
            [this](const meta::Object* before, const meta::Object* now) { OnPool(before, now); },
            internal::ForgetReports),
        scope_(loop) {}

  // Runs until it is cancelled, with `beside` as long as that takes.
  rt::Task<Status> Run(rt::Task<Status> beside);
  bool idle() const { return runner_.queue().idle(); }
  void Report(client::HealthReport& report) const;

  // How many pools are followed.
  size_t size() const { return followed_.size(); }
  // Null if the pool is not followed. Valid until the loop's next turn.
  Guests* Find(const std::string& pool);
  // The pool, without its host's reports, if it is followed and all that is on it is known; else
  // null. Valid until the loop's next turn.
  const meta::Object* FindSynced(const std::string& pool) const;

 private:
  struct Followed {
    std::string reason;
    std::unique_ptr<Guests> guests;
  };

  void OnPool(const meta::Object* before, const meta::Object* now);
  // Keeps them until their lists and watches have ended.
  static rt::Task<Status> Close(std::unique_ptr<Guests> guests) {
    co_return co_await guests->Close();
  }

  rt::Loop& loop_;
  client::Client& client_;
  const ReasonOf reason_of_;
  Runner runner_;
  client::Informer pools_;
  rt::TaskScope scope_;
  std::map<std::string, Followed> followed_;  // by name of the pool
};

template <class Guests>
rt::Task<Status> PoolGuests<Guests>::Run(rt::Task<Status> beside) {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(pools_.Run());
  tasks.push_back(std::move(beside));
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  for (auto& [pool, followed] : std::exchange(followed_, {})) {
    CO_TRY_STATUS(co_await followed.guests->Close());
  }
  CO_TRY_STATUS(co_await scope_.Join());
  co_return ends.front();
}

template <class Guests>
void PoolGuests<Guests>::Report(client::HealthReport& report) const {
  runner_.Report(report, pools_);
  for (const auto& [pool, followed] : followed_) followed.guests->Report(runner_.name(), report);
}

template <class Guests>
Guests* PoolGuests<Guests>::Find(const std::string& pool) {
  const auto found = followed_.find(pool);
  return found == followed_.end() ? nullptr : found->second.guests.get();
}

template <class Guests>
const meta::Object* PoolGuests<Guests>::FindSynced(const std::string& pool) const {
  const auto found = followed_.find(pool);
  if (found == followed_.end() || !found->second.guests->synced()) return nullptr;
  return pools_.Find({.namespace_ = "", .name = pool});
}

template <class Guests>
void PoolGuests<Guests>::OnPool(const meta::Object* before, const meta::Object* now) {
  const std::string& pool = (now != nullptr ? now : before)->metadata().name;
  std::string reason = now != nullptr ? reason_of_(*now) : std::string();
  const auto found = followed_.find(pool);
  if (found != followed_.end() && found->second.reason != reason) {
    std::unique_ptr<Guests> over = std::move(found->second.guests);
    followed_.erase(found);
    scope_.Spawn("pool_guests.close", Close(std::move(over)));
  }
  if (reason.empty()) return;
  if (!followed_.contains(pool)) {
    GuestFollower::Deps deps{
        .loop = loop_, .client = client_, .queue = runner_.queue(), .pool = pool};
    followed_.emplace(
        pool,
        Followed{.reason = std::move(reason), .guests = std::make_unique<Guests>(std::move(deps))});
  }
  runner_.queue().Add(pool);
}

}  // namespace berth::controller
