// SPDX-License-Identifier: Apache-2.0
// The PoolFeed follows the pools of all three kinds and keeps a few words of each. Of several with
// one UID, which can only come about by hand in the store, it tells the first, then the next.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/cache/health_report.h"
#include "client/cache/reflector.h"
#include "client/cache/twins.h"
#include "client/client.h"
#include "gateway/rules/pool_plan.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::gateway {

class PoolFeed {
 public:
  // `before` is null for a new pool, `now` for one that is gone.
  using OnChange = std::function<void(const PoolFace* before, const PoolFace* now)>;
  PoolFeed(rt::Loop& loop, client::Client& client, OnChange on_change);
  ~PoolFeed();

  void Start(rt::TaskScope& scope);
  bool synced() const;
  void Report(std::string_view name, client::HealthReport& report) const;
  // Null if there is none.
  const PoolFace* Find(std::string_view uid) const;
  template <class Visit>  // visit(face)
  void ForEach(const Visit& visit) const {
    for (const auto& [uid, face] : pools_) visit(face);
  }

 private:
  class Kind;
  void Put(const meta::Object& object);
  void Remove(const meta::KindInfo& kind, const std::string& name, const std::string& uid);

  const OnChange on_change_;
  std::map<std::string, PoolFace, std::less<>> pools_;  // by UID
  client::Twins<PoolFace> twins_{"gateway"};
  std::vector<std::unique_ptr<Kind>> kinds_;
};

}  // namespace berth::gateway
