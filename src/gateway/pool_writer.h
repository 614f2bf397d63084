// SPDX-License-Identifier: Apache-2.0
// The PoolWriter changes pools in the store: one write per pool at a time, on the newest state,
// tried again until it holds. What changes nothing is not written.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "gateway/rules/pool_plan.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::gateway {

class PoolWriter {
 public:
  // Writes in flight, of different pools: thousands of hosts may come at the same moment.
  static constexpr size_t kInFlightMax = 256;

  PoolWriter(rt::Loop& loop, client::Client& client) : client_(client), scope_(loop) {}

  enum class Part : uint8_t { kMain, kStatus };
  // Edits a pool; false: nothing to write. Called again if someone was faster, so it decides by the
  // state that it is given.
  using Edit = std::function<bool(meta::Object& pool)>;
  // In the background, after earlier edits of the same pool. Dropped if the pool is another one or
  // gone.
  void Change(const PoolFace& pool, Part part, Edit edit);

  // Makes or updates the pool of an announcement, and its status: the pool as it is then.
  rt::Task<Result<meta::Object>> Admit(agent::PoolAnnounce announce,
                                       agent::HostFacts host,
                                       Announcer announcer);

  rt::Task<Status> Close() { return scope_.Close(); }
  size_t waiting() const { return queues_.size(); }

 private:
  struct Job {
    PoolFace pool;
    Part part = Part::kStatus;
    Edit edit;
  };
  rt::Task<Status> WorkOff(std::string pool_uid);
  rt::Task<Status> Write(Job job);
  rt::Task<Result<meta::Object>> TryAdmit(agent::PoolAnnounce announce,
                                          agent::HostFacts host,
                                          Announcer announcer);
  rt::Task<Result<std::optional<meta::Object>>> Find(const meta::KindInfo* kind, std::string name);

  client::Client& client_;
  std::map<std::string, std::vector<Job>> queues_;  // by pool UID, while somebody works it off
  rt::Gate writing_{kInFlightMax};
  rt::TaskScope scope_;
};

}  // namespace berth::gateway
