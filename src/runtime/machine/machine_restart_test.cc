// SPDX-License-Identifier: Apache-2.0
// Defends: whatever happens while the runtime is away or in the middle of something, libvirt and
// hosts in trouble included, is found again or leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "iri/efi_variables.h"
#include "iri/local_disk.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

using iri::MachineState;

TEST(MachineHost, FindsEverythingAgainFromTheHypervisorAlone) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.metadata.annotations = {{"note", "<&>\x1b"}};
  wanted.spec.ignition_data = std::string("\0ignition", 9);
  wanted.spec.volumes = {world.Volume("data", "oda")};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const iri::Machine before = world.Get(id);
  world.Restart();
  EXPECT_EQ(world.Get(id), before) << "with its secrets, which are in a file for this boot";
  EXPECT_EQ(world.Guest(id).starts, 1);

  // P9: a reboot forgets secrets, and the record never had them.
  EXPECT_EQ(world.Guest(id).domain.record.find("ignition\""), std::string::npos);
  world.Stop();
  std::filesystem::remove_all(world.root + "/run");
  world.Start();
  EXPECT_EQ(world.Get(id).spec.ignition_data, "");
  EXPECT_EQ(world.Get(id).metadata, before.metadata);
}

TEST(MachineHost, P6_7_AfterARebootItSaysThatTheHostLostPower) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.Stop();
  world.hypervisor.guests.at(DomainNameOf(id)).domain.state = GuestState::kOff;
  world.options.boot_id = "boot-2";
  world.Start();
  ASSERT_TRUE(world.Becomes(id, MachineState::kTerminated));
  EXPECT_EQ(world.ReasonOf(id), "HostLostPower");
}

TEST(MachineHost, P6_7_GuestsThatStartTogetherAreStaggeredAndCanBeRemovedMeanwhile) {
  std::vector<std::string> paced;  // on the loop
  MachineWorld world;
  world.Stop();
  world.options.start_pace = {.at_once = 1, .interval = Duration::Hours(1)};
  world.options.paced = [&paced](const std::string& id, WallTime) { paced.push_back(id); };
  world.Start();
  const std::string first = iri::Running(world, "u-1").metadata.id;
  const auto second = world.Await(world.host().CreateMachine(world.Wanted("u-2")));
  ASSERT_TRUE(second.ok()) << second.status();
  const std::string id = second->metadata.id;
  world.Pass(Duration::Millis(50));
  EXPECT_EQ(world.Guest(id).starts, 0);
  ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return !iri::GetMachine(world, id).has_value(); }));
  EXPECT_EQ(world.Get(first).status.state, MachineState::kRunning);
  world.Stop();
  ASSERT_FALSE(paced.empty());
  EXPECT_EQ(std::ranges::count(paced, id), std::ssize(paced)) << "the first had its turn at once";
}

TEST(MachineHost, WhatHappenedWhileItWasAwayIsNoticed) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.Stop();
  FakeHypervisor::Guest& guest = world.hypervisor.guests.at(DomainNameOf(id));
  guest.domain.state = GuestState::kOff;
  guest.domain.off_reason = OffReason::kFailed;
  world.Start();
  ASSERT_TRUE(world.Becomes(id, MachineState::kTerminated));
  EXPECT_EQ(world.ReasonOf(id), "Crashed");
}

TEST(MachineHost, DeletionLeavesNothing) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume scratch = LocalDisk("scratch <&", "odb", 4096, "");
  wanted.spec.volumes = {scratch};
  iri::MachineNic nic;
  nic.name = "primary";
  wanted.spec.nics = {nic};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(world.networks.plugged.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(world.root + "/machines/" + id));
  std::filesystem::create_directories(world.root + "/logs");
  for (const std::string& name : {DomainNameOf(id), std::string("somebody-elses")}) {
    std::ofstream(world.root + "/logs/" + name + ".log") << "starting up";
  }
  ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return !iri::GetMachine(world, id).has_value(); }));
  EXPECT_TRUE(world.hypervisor.guests.empty());
  EXPECT_TRUE(world.networks.plugged.empty());
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + id));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/run/" + id));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/logs/" + DomainNameOf(id) + ".log"));
  EXPECT_TRUE(std::filesystem::exists(world.root + "/logs/somebody-elses.log"));
}

TEST(MachineHost, AfterARestartTheNetworksAreToldWhatMachinesHave) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineNic nic;
  nic.name = "primary";
  wanted.spec.nics = {nic};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  world.Stop();
  world.networks.plugged = {"left/over"};
  world.Start();
  EXPECT_EQ(world.networks.plugged, std::set<std::string>{id + "/primary"});
}

TEST(MachineHost, ADeletionThatWasBegunIsFinishedAfterARestart) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.Stop();
  Result<MachineRecord> record = MachineRecordOf(world.Guest(id).domain.record);
  ASSERT_TRUE(record.ok());
  record->object.metadata.deleted_at = WallTime::FromSeconds(1);
  world.hypervisor.guests.at(DomainNameOf(id)).domain.record = ToText(*record);
  world.Start();
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
}

TEST(MachineHost, AHypervisorInTroubleIsSaidAndNothingIsLost) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.hypervisor.trouble = "it is gone";
  EXPECT_EQ(world.Get(id).status.state, MachineState::kRunning);
  EXPECT_EQ(world.Await(world.host().Capacity())->trouble, "libvirt: it is gone");
  EXPECT_EQ(world.Await(world.host().DeleteMachine(id)).reason(), Reason::kUnavailable);
  EXPECT_EQ(world.Await(world.host().CreateMachine(world.Wanted("u-2"))).status().reason(),
            Reason::kUnavailable);
  world.hypervisor.trouble.clear();
  EXPECT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
}

TEST(MachineHost, AMachineThatLibvirtCameToLateIsTakenIn) {
  MachineWorld world;
  const std::string id = world.Await(world.host().CreateMachine(world.Wanted("u-1")))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  const std::string xml = world.Guest(id).xml;
  world.Stop();
  world.hypervisor.guests.clear();
  world.Start();
  EXPECT_TRUE(world.Await(world.host().ListMachines({}))->empty());
  // The former life sent this before it died.
  ASSERT_EQ(world.Await(world.hypervisor.Define(xml)), OkStatus());
  EXPECT_TRUE(iri::Eventually(
      world, [&] { return world.Await(world.host().ListMachines({}))->size() == 1; }));
  ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
}

TEST(MachineHost, ALookAtEverythingDuringACreateLeavesOneMachine) {
  MachineWorld world;
  // Each create is heard of while it is still being answered.
  world.hypervisor.looks_after_define = true;
  for (int i = 0; i < 20; ++i) {
    const std::string uid = "u-" + std::to_string(i);
    const auto made = world.Await(world.host().CreateMachine(world.Wanted(uid)));
    if (!made.ok()) break;  // the host is full
    const std::string id = made->metadata.id;
    EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
    EXPECT_EQ(world.Guest(id).starts, 1);
    ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
    EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
  }
}

TEST(MachineHost, NothingIsLeftOfAMachineThatLibvirtNeverGotToKnow) {
  MachineWorld world;
  const std::string kept =
      world.Await(world.host().CreateMachine(world.Wanted("u-1")))->metadata.id;
  world.hypervisor.trouble = "it is gone";
  EXPECT_TRUE(world.Await(world.host().CreateMachine(world.Wanted("u-2")))
                  .status()
                  .Is(Reason::kUnavailable));
  world.hypervisor.trouble.clear();
  std::filesystem::create_directories(world.root + "/run/m-stray");
  std::filesystem::create_directories(world.root + "/run/other");
  std::filesystem::create_directories(world.root + "/machines/m-disk");
  std::ofstream(world.root + "/machines/m-disk/root.qcow2") << "of worth";
  world.Restart();
  for (const std::string folder : {"/machines", "/run"}) {
    std::set<std::string> there;
    for (const auto& entry : std::filesystem::directory_iterator(world.root + folder)) {
      if (entry.is_directory()) there.insert(entry.path().filename().string());
    }
    const std::string foreign = folder == "/run" ? "other" : "m-disk";
    EXPECT_EQ(there, (std::set<std::string>{kept, foreign})) << folder;
  }
}

}  // namespace
}  // namespace berth::runtime
