// SPDX-License-Identifier: Apache-2.0
// A whole poollet between a fake server and fake runtimes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "iri/labels.h"
#include "poollet/poollet.h"
#include "poollet/testing/fake_gateway.h"
#include "poollet/testing/sim_host.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {

class World {
 public:
  explicit World(uint64_t seed = 1, runtime::FakeHostOptions fake = SimHost::DefaultFake())
      : loop(seed),
        network(loop),
        server(loop, network),
        host(loop, network, seed, std::move(fake)) {}

  void StartAndSync() {
    host.Start();
    ASSERT_TRUE(Until([&] { return server.is_synced(); }));
  }
  bool Until(const std::function<bool()>& done, Duration limit = Duration::Seconds(60)) {
    return loop.RunUntil(done, limit);
  }
  bool UntilState(const std::string& uid, const std::string& state) {
    return Until([&] {
      const auto found = server.heard.find(uid);
      return found != server.heard.end() && found->second.state == state;
    });
  }
  std::string Id(const std::string& uid) {
    for (const auto& [id, machine] : host.fake().state().machines()) {
      if (iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel) == uid) return id;
    }
    return "";
  }
  const iri::Machine& Machine(const std::string& uid) {
    return host.fake().state().machines().at(Id(uid)).object;
  }

  rt::SimLoop loop;
  net::SimNetwork network;
  FakeGateway server;
  SimHost host;
};

}  // namespace berth::poollet
