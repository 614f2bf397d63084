// SPDX-License-Identifier: Apache-2.0
// A SimHost is a host of a simulated world for tests: hardware and runtime (fake), disk, and a
// poollet that can die and come back on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/sim/sim_network.h"
#include "poollet/disk/sim_disk.h"
#include "poollet/poollet.h"
#include "rt/sim/sim_loop.h"
#include "runtime/fake/fake_host.h"

namespace berth::poollet {

class SimHost {
 public:
  SimHost(rt::SimLoop& loop,
          net::SimNetwork& network,
          uint64_t seed,
          runtime::FakeHostOptions fake = DefaultFake());
  ~SimHost();

  static runtime::FakeHostOptions DefaultFake();

  void Start();
  // kill -9, and writes in progress torn.
  void Kill();
  Status Stop(LeaveMode mode);
  bool is_up() const { return poollet_ != nullptr; }

  Poollet& poollet() { return *poollet_; }
  runtime::FakeHost& fake() { return fake_; }
  SimDisk& disk() { return disk_; }
  // How many guests of this uid really run, and how many objects of it there are.
  int Running(const std::string& uid);
  int Objects(const std::string& uid);

  Poollet::Options options;

 private:
  rt::SimLoop& loop_;
  runtime::FakeHost fake_;
  SimDisk disk_;
  std::unique_ptr<net::RpcDialer> dialer_;
  FixedCredentials credentials_{net::RpcCredentials()};
  std::unique_ptr<Poollet> poollet_;
};

}  // namespace berth::poollet
