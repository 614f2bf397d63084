// SPDX-License-Identifier: Apache-2.0
// A Poollet is a host's agent: it announces the host's pools, answers offers, drives the runtimes
// and reports. Everything that it touches comes in through Deps, so the same code runs on a real
// host and, many times over, in a simulation. On-loop only.
//
//   auto poollet = co_await Poollet::Start(deps, options);
//   co_await poollet->Stop(LeaveMode::kKeep);     // or Abandon(), as kill -9 would end it
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "net/rpc.h"
#include "poollet/disk/disk.h"
#include "poollet/fencer/fencer.h"
#include "poollet/host/host.h"
#include "poollet/session/session.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::poollet {

class Poollet {
 public:
  // Everything outlives the poollet.
  struct Deps {
    rt::Loop* loop = nullptr;
    net::RpcDialer* dialer = nullptr;
    CredentialSource* credentials = nullptr;
    Disk* disk = nullptr;
    HostRuntimes runtimes;
    // Null: the machine runtime's own leases if it has any, else none.
    Fencer* fencer = nullptr;
    std::function<Duration()> slept;  // since the host was booted; null: it does not sleep
  };
  struct Options {
    HostOptions host;
    SessionOptions session;
  };

  // Goes on with what the record says, whether there is a server or not. Invalid if the record is
  // damaged.
  static rt::Task<Result<std::unique_ptr<Poollet>>> Start(Deps deps, Options options);
  // REQUIRES: Stop or Abandon was awaited.
  ~Poollet();

  // Says goodbye, finishes what is being written, and ends. What runs, runs on; with kDrain it
  // waits until the server has taken away what can be elsewhere, at most
  // SessionOptions::drain_limit.
  rt::Task<Status> Stop(LeaveMode mode);
  // Ends at once, as a crash would: no goodbye, no write, no call to a runtime.
  rt::Task<Status> Abandon();

  Host& host() { return *host_; }
  Session& session() { return *session_; }

 private:
  Poollet() = default;

  std::unique_ptr<Fencer> own_fencer_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Session> session_;
};

}  // namespace berth::poollet
