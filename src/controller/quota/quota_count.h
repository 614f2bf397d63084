// SPDX-License-Identifier: Apache-2.0
// QuotaCount writes into every ResourceQuota what its namespace really uses. Writes are charged by
// the API server as they happen; this controller counts a new quota for the first time, gives back
// what deleted objects used, and corrects everything once in a while.
//
// A count is exact: it is made from the state after the quota was read, and written only if the
// quota has not changed since; whatever was charged meanwhile has changed it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/resource_quota.h"
#include "client/cache/follow_state.h"
#include "client/cache/informer.h"
#include "client/client.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class QuotaCount final : private Reconciler {
 public:
  // Everything outlives the controller.
  QuotaCount(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;

 private:
  struct Followed {
    const meta::KindInfo* kind;
    client::FollowState state;
  };

  // Keys are namespaces.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string namespace_) override;
  rt::Task<Status> CountOne(meta::Object quota, std::vector<meta::Object> classes);
  rt::Task<Result<std::vector<meta::Object>>> ListClasses();
  rt::Task<Status> CorrectNowAndThen();
  // Hears of objects of a counted kind that go or change; keeps nothing.
  rt::Task<Status> Follow(Followed* followed);
  rt::Task<Status> FollowOnce(Followed* followed);
  void CountEverywhere();
  // Something in the namespace went: count again soon.
  void OnFreed(const std::string& namespace_);
  bool HasQuotas(const std::string& namespace_) const;

  rt::Loop& loop_;
  client::Client& client_;
  const meta::Scheme& scheme_;
  Runner runner_;
  client::Informer quotas_;
  std::vector<Followed> counted_;  // as many as there are counted kinds, from the beginning
};

}  // namespace berth::controller
