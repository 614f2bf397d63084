// SPDX-License-Identifier: Apache-2.0
// A Candidacy makes one of the servers of a store its leader. The Lease says who it is; the guard
// in the store makes sure of it: whatever a leader writes is conditioned on the guard as it left it
// (store/fenced), and the next leader raises it before it does anything else.
//
//   wait ──► lease taken ──► guard raised: leads ◄──► suspended (lease not renewed in time)
//                                   │                    │
//                                   └─────► deposed ◄────┘  another one has the lease or the guard
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/leader/leader_lease.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

inline constexpr char kServerNamespace[] = "berth-system";
inline constexpr char kLeaderLease[] = "leader";
// The key of the guard, in the store.
inline constexpr char kLeaderGuard[] = "/guard/leader";
inline constexpr char kUrlAnnotation[] = "berth.dev/url";

struct CandidacyOptions {
  std::string id;   // of the data folder, which only one process uses at a time
  std::string run;  // of this start
  std::string url;  // where this server serves the API, for those who look for the leader
  // Called with the leader's URL when another server leads, as often as that is seen.
  std::function<void(const std::string&)> on_leader = {};
  // Called once: this server has led and does not any more. Whatever it still has of that must end.
  std::function<void()> on_deposed = {};
};

class Candidacy {
 public:
  struct Deps {
    rt::Loop& loop;
    store::Store& store;
    client::Client& client;  // neither is fenced
  };
  // Everything outlives it.
  Candidacy(Deps deps, CandidacyOptions options);

  // Waits for the lease and keeps it, until it is cancelled.
  rt::Task<Status> Run() { return lease_.Run(); }
  // Waits until this server leads: what its commits are to be conditioned on from now on. An error
  // says that it was deposed on the way.
  rt::Task<Result<store::Condition>> Elected();
  // Whether the lease is held right now. False at once after a pause, before anything was noticed.
  bool leads() const { return is_guarded_ && !is_deposed_ && lease_.is_held(); }
  // Who leads instead, and until when at least, as far as this server knows.
  struct Leader {
    std::string id;      // of its data folder
    std::string holder;  // of its reign
    Time until;          // by our clock
  };
  std::optional<Leader> other() const;
  // The guard was found changed.
  void Depose();
  // Makes room for the next one at once. REQUIRES: Run() has ended, and all that leaders do.
  rt::Task<Status> Leave();

 private:
  void OnTerm(std::optional<int64_t> term);
  void OnOther(const std::map<std::string, std::string>& annotations);
  rt::Task<Result<store::Condition>> RaiseGuard();

  Deps deps_;
  const CandidacyOptions options_;
  const std::string holder_;
  std::optional<int64_t> term_;  // the one that this server was elected for
  bool is_guarded_ = false;
  bool is_deposed_ = false;
  rt::Event elected_;
  client::LeaderLease lease_;
};

}  // namespace berth::app
