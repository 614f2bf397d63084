// SPDX-License-Identifier: Apache-2.0
// The PoolWriter changes pools in the store: one write per pool at a time, on the newest state,
// tried again until it holds: for as long as what is in its way may pass. What changes nothing is
// not written.
//
// Invariants:
//  1. Of every pool at most one edit per Matter waits: a newer one says all that the older did.
//  2. An edit is forgotten only if it was written, changes nothing, is replaced (1), is refused for
//     good (logged), its pool is gone, or its host announces the pool anew.
#pragma once

#include <cstdint>
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

  PoolWriter(rt::Loop& loop, client::Client& client) : loop_(loop), client_(client), scope_(loop) {}

  // What of a pool an edit is about: at most 11 of each pool wait.
  enum class Matter : uint8_t {
    // Of the status.
    kReady,
    kOrphans,
    kFenceReady,
    kClasses,  // with figures
    kFigures,  // alone
    kFacts,
    kLease,
    // Of the pool itself.
    kPurge,
    kApproval,
    kDrain,
    kDrainOver,
  };
  // Edits a pool; false: nothing to write. Called again if someone was faster, so it decides by the
  // state that it is given.
  using Edit = std::function<bool(meta::Object& pool)>;
  // In the background, after earlier edits of the same pool, in place of one about the same.
  void Change(const PoolFace& pool, Matter matter, Edit edit);

  // Makes or updates the pool of an announcement, and its status: the pool as it is then. What
  // waits about the same from before is not written any more, however this ends: a host that is
  // not admitted announces again, or falls silent and is found so.
  rt::Task<Result<meta::Object>> Admit(agent::PoolAnnounce announce,
                                       agent::HostFacts host,
                                       Announcer announcer);

  rt::Task<Status> Close() { return scope_.Close(); }
  size_t waiting() const { return queues_.size(); }

 private:
  struct Job {
    uint64_t number = 0;
    PoolFace pool;
    Matter matter = Matter::kReady;
    Edit edit;
  };
  using Queue = std::vector<Job>;  // the oldest first, which is being written
  rt::Task<Status> WorkOff(std::string pool_uid);
  // One attempt.
  rt::Task<Status> Write(Job job);
  bool IsPending(const Job& job) const;
  void Drop(const Job& job);
  void Supersede(const std::string& pool_uid, const Announcer& announcer);
  rt::Task<Result<meta::Object>> TryAdmit(agent::PoolAnnounce announce,
                                          agent::HostFacts host,
                                          Announcer announcer);
  rt::Task<Result<std::optional<meta::Object>>> Find(const meta::KindInfo* kind, std::string name);

  rt::Loop& loop_;
  client::Client& client_;
  uint64_t last_job_ = 0;
  std::map<std::string, Queue> queues_;  // by pool UID, while somebody works it off
  rt::Gate writing_{kInFlightMax};
  rt::TaskScope scope_;
};

}  // namespace berth::gateway
