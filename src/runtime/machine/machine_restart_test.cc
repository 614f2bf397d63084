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

// The host loses its power: guests and what was in memory are gone, and it is another boot.
void CutPower(MachineWorld& world, const std::string& boot) {
  world.Stop();
  for (auto& [name, guest] : world.hypervisor.guests) guest.domain.state = GuestState::kOff;
  std::filesystem::remove_all(world.root + "/run");
  world.options.boot_id = boot;
  world.Start();
}

// Whether it says that it waits for its secrets.
bool SaysSecretsMissing(MachineWorld& world, const std::string& id) {
  return std::ranges::any_of(world.Get(id).status.conditions, [](const auto& condition) {
    return condition.type == "SecretsReady" && condition.status == "False" &&
           condition.reason == "SecretsMissing";
  });
}

// What the guest would see of its configuration: the seed disk, and the firmware's file if it has
// one.
std::string Configuration(MachineWorld& world, const std::string& id) {
  const std::string run = world.root + "/run/" + id;
  const bool is_shown = world.Guest(id).xml.find(run + "/ignition") != std::string::npos;
  return FileText(run + "/seed.img") + (is_shown ? FileText(run + "/ignition") : std::string());
}

Status Give(MachineWorld& world, const std::string& data) {
  iri::Ignition ignition{.machine_uid = "u-1", .data = data};
  return world.Await(world.host().SetIgnition(ignition));
}

TEST(MachineHost, P9_AfterARebootAGuestWaitsForItsIgnition) {
  for (const std::string data : {"#cloud-config\nmotd: hello\n", "{\"ignition\": {}}"}) {
    MachineWorld world;
    iri::Machine wanted = world.Wanted("u-1");
    wanted.spec.ignition_data = data;
    const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
    ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
    EXPECT_FALSE(SaysSecretsMissing(world, id));
    CutPower(world, "boot-2");
    ASSERT_TRUE(world.Becomes(id, MachineState::kTerminated));
    EXPECT_TRUE(SaysSecretsMissing(world, id));
    EXPECT_NE(world.Events().find("SecretsMissing: its ignition or user data"), std::string::npos);
    ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
    ASSERT_TRUE(world.Becomes(id, MachineState::kPending));
    world.Pass(Duration::Millis(50));
    EXPECT_EQ(world.Guest(id).starts, 1);
    world.Restart();
    EXPECT_TRUE(SaysSecretsMissing(world, id)) << "also in its next life";
    world.Pass(Duration::Millis(50));
    EXPECT_EQ(world.Guest(id).starts, 1);

    ASSERT_EQ(Give(world, data), OkStatus());
    EXPECT_FALSE(SaysSecretsMissing(world, id));
    ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
    EXPECT_EQ(world.Guest(id).starts, 2);
    EXPECT_NE(Configuration(world, id).find(data), std::string::npos);
    EXPECT_EQ(world.Guest(id).domain.record.find(data.substr(0, 8)), std::string::npos);
  }
}

TEST(MachineHost, P9_IgnitionIsMissedByWhatNeverRanAndByNobodyWhoHasNone) {
  MachineWorld world;
  const std::string bare = iri::Running(world, "u-2").metadata.id;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.ignition_data = "#cloud-config\n";
  wanted.spec.power = iri::Power::kOff;
  const std::string off = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  CutPower(world, "boot-2");
  EXPECT_FALSE(SaysSecretsMissing(world, bare));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(bare, iri::Power::kOn)), OkStatus());
  EXPECT_TRUE(world.Becomes(bare, MachineState::kRunning)) << "from the record alone";
  EXPECT_TRUE(SaysSecretsMissing(world, off));
  ASSERT_EQ(Give(world, "#cloud-config\n"), OkStatus());
  EXPECT_EQ(world.Get(off).status.state, MachineState::kStopped);
  // Killed here, it has it: the file is for this boot.
  world.Restart();
  EXPECT_FALSE(SaysSecretsMissing(world, off));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(off, iri::Power::kOn)), OkStatus());
  EXPECT_TRUE(world.Becomes(off, MachineState::kRunning));
}

TEST(MachineHost, P9_AMachineWhoseIgnitionWasTakenAwayStartsWithout) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.ignition_data = "#cloud-config\n";
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  CutPower(world, "boot-2");
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  world.hypervisor.trouble = "it is gone";
  EXPECT_EQ(Give(world, "").reason(), Reason::kUnavailable);
  world.hypervisor.trouble.clear();
  EXPECT_TRUE(SaysSecretsMissing(world, id)) << "until it is written down";
  ASSERT_EQ(Give(world, ""), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
  CutPower(world, "boot-3");
  EXPECT_FALSE(SaysSecretsMissing(world, id));
}

TEST(MachineHost, P9_ARecordThatDoesNotSayThatThereIsIgnitionLearnsIt) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.ignition_data = "#cloud-config\n";
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  world.Stop();
  // As an earlier version wrote it.
  Result<MachineRecord> record = MachineRecordOf(world.Guest(id).domain.record);
  ASSERT_TRUE(record.ok() && record->has_ignition);
  record->has_ignition = false;
  world.hypervisor.guests.at(DomainNameOf(id)).domain.record = ToText(*record);
  world.Start();
  EXPECT_TRUE(iri::Eventually(world, [&] {
    bool says = false;
    world.OnLoop([&] { says = MachineRecordOf(world.Guest(id).domain.record)->has_ignition; });
    return says;
  }));
  CutPower(world, "boot-2");
  EXPECT_TRUE(SaysSecretsMissing(world, id));
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

TEST(MachineHost, P6_7_AfterAPowerCutMoreGuestsThanStartAtOnceComeBackInTurns) {
  constexpr int kGuests = 6;
  std::set<std::string> paced;  // on the loop
  MachineWorld world;
  world.Stop();
  world.options.total["cpu"] = 1000 * kGuests;
  world.options.paced = [&paced](const std::string& id, WallTime) { paced.insert(id); };
  world.options.start_pace = {.at_once = kGuests, .interval = Duration::Millis(1)};
  world.Start();
  std::vector<std::string> ids;
  for (int i = 0; i < kGuests; ++i) {
    ids.push_back(iri::Running(world, "u-" + std::to_string(i)).metadata.id);
  }
  const auto alive = [&] {
    return std::ranges::count_if(ids, [&](const std::string& id) {
      return world.Get(id).status.state == MachineState::kRunning;
    });
  };
  // As a poollet does with what its record says is on.
  const auto switch_on = [&] {
    for (const std::string& id : ids) {
      ASSERT_TRUE(iri::Eventually(
          world, [&] { return world.Get(id).status.state == MachineState::kTerminated; }));
      ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
    }
  };
  world.options.start_pace = {.at_once = 2, .interval = Duration::Hours(1)};
  CutPower(world, "boot-2");
  paced.clear();
  switch_on();
  EXPECT_TRUE(iri::Eventually(world, [&] { return alive() == 2; }));
  world.Pass(Duration::Millis(50));
  EXPECT_EQ(alive(), 2) << "the others wait for their turn";
  world.Stop();
  EXPECT_EQ(paced.size(), size_t{kGuests} - 2);

  world.options.start_pace = {.at_once = 2, .interval = Duration::Millis(5)};
  world.Start();
  EXPECT_TRUE(iri::Eventually(world, [&] { return alive() == kGuests; }));
  for (const std::string& id : ids) EXPECT_EQ(world.Guest(id).starts, 2) << id;
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
  wanted.spec.hostname = "web";
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  nic.name = "later";
  ASSERT_EQ(world.Await(world.host().AttachNetworkInterface(id, nic)), OkStatus());
  const std::map<std::string, std::string> hostnames = {{"later", "web"}, {"primary", "web"}};
  EXPECT_EQ(world.networks.hostnames, hostnames);
  world.Stop();
  world.networks.plugged = {"left/over"};
  world.networks.hostnames.clear();
  world.Start();
  const std::set<std::string> plugged = {id + "/later", id + "/primary"};
  EXPECT_EQ(world.networks.plugged, plugged);
  EXPECT_EQ(world.networks.hostnames, hostnames);
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

// The runtime starts beside a libvirt that says nothing.
void StartUnheard(MachineWorld& world) {
  world.Stop();
  world.hypervisor.trouble = "it says nothing";
  world.Start();
}

void GoesOn(MachineWorld& world) {
  world.OnLoop([&] { world.hypervisor.trouble.clear(); });
}

bool IsKnown(MachineWorld& world) {
  return iri::Eventually(world, [&] { return world.Await(world.host().ListMachines({})).ok(); });
}

TEST(MachineHost, R6_4_WhatRunsUnderASilentHypervisorIsNeitherListedAsAbsentNorMadeTwice) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  StartUnheard(world);
  MachineHost& host = world.host();
  iri::AttachRequest console;
  console.machine_uid = "u-1";
  console.what = "console";
  const Status answers[] = {world.Await(host.ListMachines({})).status(),
                            world.Await(host.CreateMachine(world.Wanted("u-1"))).status(),
                            world.Await(host.CreateMachine(world.Wanted("u-2"))).status(),
                            world.Await(host.DeleteMachine(id)),
                            world.Await(host.UpdateMachineAnnotations(id, {})),
                            world.Await(host.UpdateMachinePower(id, iri::Power::kOff)),
                            world.Await(host.AttachVolume(id, world.Volume("data", "oda"))),
                            world.Await(host.UpdateVolume(id, world.Volume("data", "oda"))),
                            world.Await(host.DetachVolume(id, "data")),
                            world.Await(host.AttachNetworkInterface(id, {})),
                            world.Await(host.DetachNetworkInterface(id, "nic")),
                            world.Await(host.Exec(id)).status(),
                            world.Await(host.Attach(console)).status(),
                            world.Await(host.ListGuests()).status(),
                            world.Await(host.ResumeGuest("u-1")),
                            world.Await(host.SetIgnition({.machine_uid = "u-1", .data = "{}"})),
                            world.Await(host.SetPullSecret({})),
                            world.Await(host.SetReservations({})),
                            world.Await(host.ListReservations()).status(),
                            world.Await(host.ListEvents({})).status()};
  for (const Status& answer : answers) {
    EXPECT_EQ(answer.reason(), Reason::kUnavailable) << answer;
    EXPECT_EQ(answer.message(), "which machines this host has is not known yet: it says nothing");
  }
  GoesOn(world);
  ASSERT_TRUE(IsKnown(world));
  EXPECT_EQ(world.Get(id).status.state, MachineState::kRunning);
  EXPECT_EQ(world.Await(host.CreateMachine(world.Wanted("u-1")))->metadata.id, id);
  EXPECT_EQ(world.hypervisor.guests.size(), 1U);
  EXPECT_EQ(world.Guest(id).starts, 1);
}

TEST(MachineHost, OneWithASilentHypervisorSaysWhatItIsAndWhatIsWrong) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  StartUnheard(world);
  MachineHost& host = world.host();
  EXPECT_TRUE(world.Await(host.Version()).ok());
  EXPECT_EQ(world.Await(host.ClassStatus())->size(), 2U);
  EXPECT_TRUE(world.Await(host.Watch("")).ok());
  EXPECT_EQ(world.Await(host.RenewLease({})).status().reason(), Reason::kMethodNotSupported);
  iri::HostCapacity capacity = *world.Await(host.Capacity());
  EXPECT_EQ(capacity.trouble, "which machines this host has is not known yet: it says nothing");
  EXPECT_EQ(capacity.total, world.options.total);
  EXPECT_EQ(capacity.boot_id, "boot-1");
  EXPECT_TRUE(capacity.used.empty());
  GoesOn(world);
  ASSERT_TRUE(IsKnown(world));
  capacity = *world.Await(host.Capacity());
  EXPECT_EQ(capacity.trouble, "");
  EXPECT_EQ(capacity.used.at("cpu"), 1000);
  EXPECT_EQ(capacity.facts.at("machine-hypervisor"), "fake");
  EXPECT_EQ(world.Get(id).status.state, MachineState::kRunning);
}

TEST(MachineHost, AHypervisorThatSaysLateWhichOneItIsIsAskedAgain) {
  MachineWorld world;
  world.Stop();
  world.hypervisor.version_failure = Timeout("it says nothing");
  world.Start();
  const auto facts = [&world] { return world.Await(world.host().Capacity())->facts; };
  EXPECT_FALSE(facts().contains("machine-hypervisor"));
  world.OnLoop([&] { world.hypervisor.version_failure = OkStatus(); });
  EXPECT_EQ(facts().at("machine-hypervisor"), "fake");
  // What is known once is known, whoever is away.
  world.OnLoop([&] { world.hypervisor.trouble = "it says nothing"; });
  EXPECT_EQ(facts().at("machine-hypervisor"), "fake");
  GoesOn(world);
}

TEST(MachineHost, AHypervisorThatIsHeardAtLastIsAskedAtOnce) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.options.retry = {.initial = Duration::Minutes(10), .max = Duration::Minutes(10)};
  StartUnheard(world);
  const std::string cursor = "elsewhere.1";
  const std::unique_ptr<iri::ChangeStream> changes = *world.Await(world.host().Watch(cursor));
  EXPECT_EQ(world.Await(changes->Next())->type, iri::ChangeType::kResync);
  GoesOn(world);
  world.hypervisor.Tell("", DomainEvent::Kind::kConnected);
  // Whoever was refused before hears that it may ask.
  EXPECT_EQ(world.Await(changes->Next())->id, id);
  ASSERT_TRUE(IsKnown(world));
  EXPECT_EQ(world.Get(id).status.state, MachineState::kRunning);
  EXPECT_EQ(world.Await(changes->Close()), OkStatus());
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
