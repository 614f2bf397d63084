// SPDX-License-Identifier: Apache-2.0
// A QuietWorld is a world for tests of what is said of worlds at rest: a server, hosts as they are
// added, the users' classes, and nobody who does anything unasked.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "apis/compute/machine.h"
#include "gateway/testing/temp_authority.h"
#include "sim/convergence.h"
#include "sim/rooms.h"
#include "sim/troubles.h"
#include "sim/users.h"
#include "sim/world.h"

namespace berth::sim {

class QuietWorld : public testing::Test {
 protected:
  static constexpr int64_t kCpus = 12;  // of every host, with 4 GiB each

  QuietWorld() : world_(Quiet(), 1, Broken::kNothing, Authority()), users_(world_) {
    world_.UseMoments(troubles_);
    world_.UseHostHooks([this](size_t host) { return troubles_.HooksFor(host); });
    world_.StartServers();
    users_.Begin();
  }
  ~QuietWorld() override {
    EXPECT_FALSE(world_.violation()) << world_.violation()->what;
    world_.KillEverything();
  }

  HostProcess& AddHost(const std::string& name, HostShape shape) {
    world_.AddHost("host-" + name, name, shape);
    HostProcess& host = *world_.hosts().back();
    world_.StartHost(host);
    Settle();
    CHECK(host.is_synced()) << name;
    return host;
  }

  // Longer than anything takes that nothing stands in the way of.
  void Settle() { world_.RunUntil(world_.now() + Duration::Seconds(15)); }

  const PlacedFact& CreateMachine(const std::string& name,
                                  std::string_view class_name,
                                  std::string_view priority_class = "") {
    apis::compute::Machine machine;
    machine.metadata.namespace_ = kNamespace;
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = class_name;
    machine.spec.placement.emplace();
    machine.spec.placement->priority_class_name = priority_class;
    ServerProcess& server = *world_.server();
    const auto made = world_.RunOn(
        server.loop(),
        server.client().Create(meta::Object::Of(apis::compute::kMachineKind, std::move(machine)),
                               client::WriteOptions()));
    CHECK(made.ok()) << made.status();
    Settle();
    return *world_.truth().Find(made->metadata().uid);
  }

  std::string WhyNot() { return WhyNotConverged(world_, troubles_); }

  World world_;
  Users users_;
  Troubles troubles_{world_, users_};

 private:
  static Scenario Quiet() {
    Scenario quiet;
    for (const ScenarioField& field : ScenarioFields()) {
      if (!field.section.empty()) quiet.*field.value = 0;
    }
    quiet.cpus = kCpus;
    quiet.machines = 0;
    quiet.sets = 0;
    return quiet;
  }
  static const pki::CertificateAuthority& Authority() {
    static const gateway::TempAuthority authority{rt::SimLoop(1).WallNow()};
    return authority.get();
  }
};

}  // namespace berth::sim
