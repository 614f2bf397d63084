// SPDX-License-Identifier: Apache-2.0
// A LeaderLease makes one of several servers the leader for something, through a Lease object. The
// term, the Lease's leaseTransitions, is larger for every later leader, and is what commits are
// conditioned on: a leader that was paused and believes in its lease still cannot bind (S3c).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  // Attempts that fail, or find another leader, are made this often.
  Duration try_again = Duration::Millis(500);
  // An attempt that takes longer has failed; it must not outlast what it is to renew.
  Duration attempt_limit = Duration::Seconds(2);
  TakeOver take_over = TakeOver::kWhenExpired;
  // Whether this holder is known to be dead; empty: nobody is.
  std::function<bool(const std::string& holder)> is_dead = {};
  // Shown to people and servers who look for the leader.
  std::map<std::string, std::string> annotations = {};
  // Another one holds the lease: its annotations.
  std::function<void(const std::map<std::string, std::string>&)> on_other = {};
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

  // Tries to lead until it is cancelled; the lease is then left to expire, or released.
  rt::Task<Status> Run();
  // Gives the lease back, so that nobody has to wait for its end. REQUIRES: Run() has ended.
  rt::Task<Status> Release();
  // The term while this server leads.
  std::optional<int64_t> term() const { return term_; }
  const std::string& holder() const { return options_.holder; }
  // Until when another one holds the lease, by our clock and as far as we have seen; nullopt if
  // nobody is known to.
  std::optional<Time> other_until() const;
  const std::string& other() const { return *seen_.holder_identity; }  // REQUIRES: other_until()
  // Whether the lease is ours at this moment, by our clock: false at once for who was paused.
  bool is_held() const { return term_.has_value() && loop_.Now() < held_until_; }

 private:
  // One attempt to get or to keep the lease; false if another one has it.
  rt::Task<Result<bool>> TryHold();
  bool MayTake(const apis::k8s::LeaseSpec& spec);
  Time SeenUntil() const;  // REQUIRES: seen_since_
  apis::k8s::LeaseSpec Mine(const apis::k8s::LeaseSpec& before) const;
  void Held(int64_t term);
  void SetTerm(std::optional<int64_t> term);

  rt::Loop& loop_;
  Client& client_;
  const LeaderOptions options_;
  std::function<void(std::optional<int64_t>)> on_change_;
  std::optional<int64_t> term_;
  Time attempted_;                  // when the attempt in progress began
  Time held_until_;                 // by our clock, counted from before the renewal was sent
  apis::k8s::LeaseSpec seen_;       // the last state of another holder
  std::optional<Time> seen_since_;  // when it was first seen so
};

}  // namespace berth::client
