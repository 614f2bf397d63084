// SPDX-License-Identifier: Apache-2.0
// Dials of several servers beside each other: one that says nothing keeps a host from none of the
// others, and one that is merely slow is waited for. On-loop only.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::poollet {

// A dial that has ended.
struct Dialled {
  std::string address;
  Time began;
  Status status;
  std::unique_ptr<net::RpcChannel> channel;  // null if the status is not ok
};

class Dials {
 public:
  // Both outlive it.
  Dials(rt::Loop& loop, net::RpcDialer& dialer) : loop_(loop), dialer_(dialer) {}
  // REQUIRES: GiveUp() was awaited since the last Begin().
  ~Dials() = default;

  // Of one address there is one dial at a time.
  void Begin(const std::string& address, net::RpcCredentials credentials, Duration limit);
  bool has(const std::string& address) const;
  // The next dial that ends, one that succeeded first; nullopt if none does within `patience`
  // (without: all are waited for).
  rt::Task<Result<std::optional<Dialled>>> Next(std::optional<Duration> patience);
  // Breaks off those in progress, and closes those that nobody took. Always ok.
  rt::Task<Status> GiveUp();

 private:
  struct Dial {
    Dialled outcome;
    bool has_ended = false;
  };
  using List = std::list<Dial>;

  rt::Task<Status> Run(Dial* dial, net::RpcCredentials credentials, Duration limit);
  std::optional<Dialled> TakeEnded();

  rt::Loop& loop_;
  net::RpcDialer& dialer_;
  List dials_;
  rt::Event ended_;
  std::unique_ptr<rt::TaskScope> running_;  // null while there is none
};

}  // namespace berth::poollet
