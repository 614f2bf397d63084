// SPDX-License-Identifier: Apache-2.0
// A HostProcess is a host: hardware and guests that outlive everything (a fake host), a disk, and a
// real poollet that dies and comes back on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/sim/sim_network.h"
#include "pki/certificate_authority.h"
#include "poollet/disk/sim_disk.h"
#include "poollet/poollet.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "runtime/fake/fake_host.h"
#include "sim/broken_host.h"
#include "sim/process_loop.h"

namespace berth::sim {

// What kind of host it is.
struct HostShape {
  bool is_foreign = false;   // a runtime without leases and idempotent creates
  bool has_buckets = false;  // a BucketPool beside the others
};

class HostProcess {
 public:
  struct Options {
    size_t index = 0;
    std::string name;   // of the host and its node
    std::string pools;  // what its pools are called: "pool-7" makes MachinePool and VolumePool
    HostShape shape;
    std::vector<std::string> servers;  // "node:port"
    runtime::FakeHostOptions fake;
    int64_t clock_parts_per_million = 0;
    uint64_t seed = 1;
    Broken broken = Broken::kNothing;
  };
  // What happens on the host, inside the event in which it does.
  struct Hooks {
    std::function<void(const runtime::FakeHostState::Touched&)> touched;  // by a runtime call
    std::function<void()> write_begins;                                   // of the record
    std::function<void()> written;
  };
  HostProcess(rt::SimLoop& world,
              net::SimNetwork& network,
              const pki::CertificateAuthority& authority,
              Options options,
              Hooks hooks);
  // REQUIRES: the poollet does not run.
  ~HostProcess();

  rt::Task<Status> Start();
  // As SIGTERM with --on-stop: says goodbye, and ends when it may. `done` is called inside an event
  // when it has ended, and not if it is killed before; Kill() is still due then.
  // REQUIRES: it is up and not leaving.
  void Leave(poollet::LeaveMode mode, std::function<void()> done);
  // kill -9: nothing is written or called any more, and writes in progress are torn.
  rt::Task<Status> Kill();
  bool is_up() const { return poollet_ != nullptr; }
  bool is_leaving() const { return leaving_ != nullptr; }
  bool has_left() const { return left_.has_value(); }
  bool is_synced() const { return poollet_ != nullptr && poollet_->session().is_synced(); }

  const std::string& name() const { return options_.name; }
  const std::string& pools() const { return options_.pools; }
  size_t index() const { return options_.index; }
  ProcessLoop& loop() { return loop_; }
  runtime::FakeHost& fake() { return fake_; }
  runtime::FakeHostState& state() { return fake_.state(); }
  poollet::SimDisk& disk() { return disk_; }
  poollet::Poollet& poollet() { return *poollet_; }
  const HostShape& shape() const { return options_.shape; }
  bool is_foreign() const { return options_.shape.is_foreign; }
  const iri::ResourceVector& capacity() const { return options_.fake.capacity; }

 private:
  rt::Task<Status> Stop(poollet::LeaveMode mode, std::function<void()> done);

  const Options options_;
  ProcessLoop loop_;
  runtime::FakeHost fake_;
  poollet::SimDisk disk_;
  std::unique_ptr<net::RpcDialer> dialer_;
  poollet::FixedCredentials credentials_;
  std::unique_ptr<BrokenMachines> broken_machines_;
  std::unique_ptr<BrokenFencer> broken_fencer_;
  std::unique_ptr<BrokenHostRuntime> broken_runtime_;
  std::unique_ptr<BrokenDisk> broken_disk_;
  std::unique_ptr<poollet::Poollet> poollet_;
  std::unique_ptr<rt::TaskScope> leaving_;
  std::optional<Status> left_;  // how the poollet stopped by itself
};

}  // namespace berth::sim
