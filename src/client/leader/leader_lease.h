// SPDX-License-Identifier: Apache-2.0
// A LeaderLease makes one of several servers the leader for something, through a Lease object. The
// term, the Lease's leaseTransitions, is larger for every later leader, and is what commits are
// conditioned on: a leader that was paused and believes in its lease still cannot bind (S3c).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apis/k8s/lease.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::client {

// What becomes of a lease that someone else holds.
enum class TakeOver : uint8_t {
  kWhenExpired,  // by our clock: nothing was renewed for its duration since we first saw it so
  kAtOnce,       // the store is ours alone, so whoever held it is dead
};

struct LeaderOptions {
  ObjectKey lease;
  std::string holder;  // different for every process, restarts included
  Duration duration = Duration::Seconds(8);
  Duration renew_every = Duration::Seconds(2);
  TakeOver take_over = TakeOver::kWhenExpired;
};

class LeaderLease {
 public:
  // Everything outlives the lease. `on_change` gets the term when it begins and nullopt when it
  // ends.
  LeaderLease(rt::Loop& loop,
              Client& client,
              LeaderOptions options,
              std::function<void(std::optional<int64_t>)> on_change)
      : loop_(loop),
        client_(client),
        options_(std::move(options)),
        on_change_(std::move(on_change)) {}

  // Tries to lead until it is cancelled; the lease is then left to expire.
  rt::Task<Status> Run();
  // The term while this server leads.
  std::optional<int64_t> term() const { return term_; }
  const std::string& holder() const { return options_.holder; }

 private:
  // One attempt to get or to keep the lease; false if another one has it.
  rt::Task<Result<bool>> TryHold();
  bool MayTake(const apis::k8s::LeaseSpec& spec);
  apis::k8s::LeaseSpec Mine(const apis::k8s::LeaseSpec& before) const;
  void SetTerm(std::optional<int64_t> term);

  rt::Loop& loop_;
  Client& client_;
  const LeaderOptions options_;
  std::function<void(std::optional<int64_t>)> on_change_;
  std::optional<int64_t> term_;
  Time held_until_;                 // by our clock, counted from before the renewal was sent
  apis::k8s::LeaseSpec seen_;       // the last state of another holder
  std::optional<Time> seen_since_;  // when it was first seen so
};

}  // namespace berth::client
