// SPDX-License-Identifier: Apache-2.0
// Defends: a guest that is alive has the devices of its record, whoever was killed or did not
// answer in the middle of an attach, and goes on when its disk has room again.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "iri/labels.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

using iri::AttachmentState;
using iri::MachineState;

iri::MachineNic Nic(const std::string& name) {
  iri::MachineNic nic;
  nic.name = name;
  return nic;
}

std::string MacIn(MachineWorld& world, const std::string& id, const std::string& nic) {
  return world.networks.Describe(id, Nic(nic))->mac;
}

DomainDisk Disk(const std::string& target, const std::string& path) {
  DomainDisk disk;
  disk.target = target;
  disk.serial = "serial";
  disk.file = {.path = path, .format = DiskFormat::kRaw};
  return disk;
}

// What the runtime wrote down last before it was killed.
void Write(MachineWorld& world,
           const std::string& id,
           const std::function<void(MachineRecord&)>& change) {
  Domain& domain = world.hypervisor.guests.at(DomainNameOf(id)).domain;
  Result<MachineRecord> record = MachineRecordOf(domain.record);
  CHECK(record.ok()) << record.status();
  change(*record);
  domain.record = ToText(*record);
}

int Starts(MachineWorld& world, const std::string& id) {
  int starts = 0;
  world.OnLoop([&] { starts = world.Guest(id).starts; });
  return starts;
}

int Resumes(MachineWorld& world, const std::string& id) {
  int resumes = 0;
  world.OnLoop([&] { resumes = world.Guest(id).resumes; });
  return resumes;
}

bool AllAttached(MachineWorld& world, const std::string& id) {
  const iri::MachineStatus status = world.Get(id).status;
  const auto is_attached = [](const iri::AttachmentStatus& part) {
    return part.state == AttachmentState::kAttached;
  };
  return std::ranges::all_of(status.volumes, is_attached) &&
         std::ranges::all_of(status.nics, is_attached);
}

TEST(MachineUpkeep, WhatTheRecordNamesAndTheGuestLacksIsAttachedAfterAKill) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.Stop();
  Write(world, id, [&](MachineRecord& record) {
    iri::MachineSpec& spec = record.object.spec;
    spec.volumes = {world.Volume("data", "odb")};
    TakeSecrets(spec);
    spec.nics = {Nic("late")};
  });
  world.Start();
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, MacIn(world, id, "late")); }));
  EXPECT_TRUE(iri::Eventually(world, [&] { return AllAttached(world, id); }));
  EXPECT_EQ(world.networks.plugged, std::set<std::string>{id + "/late"});
  EXPECT_EQ(Starts(world, id), 1) << "without a restart";
}

TEST(MachineUpkeep, WhatTheGuestHasAndTheRecordDoesNotNameIsDetached) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {world.Volume("data", "odb")};
  wanted.spec.nics = {Nic("primary")};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const std::string domain = DomainNameOf(id);
  world.Stop();
  const DomainNic extra = *world.networks.Describe(id, Nic("extra"));
  DomainDisk foreign = Disk("vdd", "/of/somebody");
  std::string by_hand = DiskXml(foreign);
  const size_t serial = by_hand.find("<serial>");
  by_hand.erase(serial, by_hand.find("</serial>") + 9 - serial);
  world.OnLoop([&] {
    world.hypervisor.Give(domain, DiskXml(Disk("vdc", "/late")));
    world.hypervisor.Give(domain, NicXml(extra));
    world.hypervisor.Give(domain, by_hand);
  });
  world.Start();
  EXPECT_TRUE(iri::Eventually(world, [&] { return !world.Has(id, "vdc"); })) << world.Events();
  EXPECT_TRUE(iri::Eventually(world, [&] { return !world.Has(id, extra.mac); }));
  world.Pass(Duration::Millis(100));
  EXPECT_TRUE(world.Has(id, "vdb"));
  EXPECT_TRUE(world.Has(id, MacIn(world, id, "primary")));
  EXPECT_TRUE(world.Has(id, std::string(kSeedTarget)));
  EXPECT_TRUE(world.Has(id, "vdd")) << "somebody attached it by hand";
}

TEST(MachineUpkeep, ADiskOfAnotherFileMakesWayForTheOneOfTheRecord) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.Stop();
  Write(world, id, [&](MachineRecord& record) {
    record.object.spec.volumes = {world.Volume("data", "odb")};
    TakeSecrets(record.object.spec);
  });
  world.OnLoop(
      [&] { world.hypervisor.Give(DomainNameOf(id), DiskXml(Disk("vdb", "/former.raw"))); });
  world.Start();
  const std::string path = world.root + "/volume.raw";
  EXPECT_TRUE(iri::Eventually(world, [&] {
    std::string element;
    world.OnLoop([&] {
      const auto& devices = world.Guest(id).devices;
      if (devices.contains("vdb")) element = devices.at("vdb");
    });
    return DeviceOfFile(element, path) == "vdb";
  })) << world.Events();
}

TEST(MachineUpkeep, AnAttachWhoseAnswerIsLostIsDoneOnce) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  for (const Status& lost : {Timeout("no answer"), Unavailable("the connection is lost")}) {
    world.OnLoop([&] { world.hypervisor.attach_answer = lost; });
    EXPECT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))).reason(),
              lost.reason());
    EXPECT_EQ(world.Await(world.host().AttachNetworkInterface(id, Nic("late"))).reason(),
              lost.reason());
    world.OnLoop([&] { world.hypervisor.attach_answer = OkStatus(); });
    EXPECT_TRUE(iri::Eventually(world, [&] { return AllAttached(world, id); }));
    EXPECT_EQ(world.Get(id).spec.volumes.size(), 1U) << "whoever asked finds it";
    EXPECT_EQ(world.Get(id).spec.nics.size(), 1U);
    EXPECT_EQ(world.Get(id).spec.volumes[0].connection->secret_data,
              world.Volume("data", "odb").connection->secret_data);
    ASSERT_EQ(world.Await(world.host().DetachVolume(id, "data")), OkStatus());
    ASSERT_EQ(world.Await(world.host().DetachNetworkInterface(id, "late")), OkStatus());
    EXPECT_FALSE(world.Has(id, "vdb"));
  }
}

TEST(MachineUpkeep, AnAttachThatNeitherFailsNorSucceedsIsTriedUntilItDoes) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] { world.hypervisor.attach_failure = Timeout("libvirt hangs"); });
  EXPECT_TRUE(
      world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))).Is(Reason::kTimeout));
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "Failed"; }));
  const iri::MachineStatus status = world.Get(id).status;
  EXPECT_EQ(status.state, MachineState::kRunning);
  EXPECT_EQ(status.conditions[0].type, "DevicesReady");
  EXPECT_TRUE(status.conditions[0].message.contains("volume \"data\": libvirt hangs"));
  EXPECT_EQ(status.volumes[0].state, AttachmentState::kPending);
  world.OnLoop([&] { world.hypervisor.attach_failure = OkStatus(); });
  EXPECT_TRUE(iri::Eventually(world, [&] { return AllAttached(world, id); }));
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id).empty(); }));
}

TEST(MachineUpkeep, APausedGuestThatLacksADeviceHasOneConditionOfEachType) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] {
    world.hypervisor.Pause(DomainNameOf(id), PauseReason::kTold);
    world.hypervisor.attach_failure = Timeout("libvirt hangs");
  });
  ASSERT_TRUE(world.Becomes(id, MachineState::kSuspended));
  EXPECT_FALSE(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))).ok());
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Get(id).status.conditions.size() == 2; }));
  const iri::MachineStatus status = world.Get(id).status;
  EXPECT_EQ(status.conditions[0].type, "Running");
  EXPECT_EQ(status.conditions[0].reason, "Paused");
  EXPECT_EQ(status.conditions[1].type, "DevicesReady");
}

TEST(MachineUpkeep, AFailedAttachAndAFailedWayBackAreMadeGood) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  // The record is written, and then libvirt is gone.
  world.OnLoop([&] {
    world.hypervisor.attach_failure = Internal("no");
    world.hypervisor.trouble_after_attach = "libvirt is gone";
  });
  EXPECT_FALSE(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))).ok());
  EXPECT_EQ(world.Get(id).spec.volumes.size(), 1U);
  world.OnLoop([&] {
    world.hypervisor.attach_failure = OkStatus();
    world.hypervisor.trouble_after_attach.clear();
    world.hypervisor.trouble.clear();
    world.hypervisor.Tell("", DomainEvent::Kind::kConnected);
  });
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
  EXPECT_TRUE(iri::Eventually(world, [&] { return AllAttached(world, id); }));
}

TEST(MachineUpkeep, AnAttachThatComesLateIsNotInTheWay) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] { world.hypervisor.attach_failure = Timeout("libvirt hangs"); });
  EXPECT_FALSE(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))).ok());
  // Nobody wants it any more when libvirt comes to it.
  ASSERT_EQ(world.Await(world.host().DetachVolume(id, "data")), OkStatus());
  world.OnLoop([&] {
    world.hypervisor.attach_failure = OkStatus();
    world.hypervisor.Give(DomainNameOf(id), DiskXml(Disk("vdb", world.root + "/volume.raw")));
  });
  EXPECT_TRUE(iri::Eventually(world, [&] { return !world.Has(id, "vdb"); })) << world.Events();
  EXPECT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("other", "odb"))), OkStatus());
  EXPECT_TRUE(world.Has(id, "vdb"));
}

TEST(MachineUpkeep, AfterAReconnectTheDevicesAreLookedAtAgain) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {world.Volume("data", "odb")};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  // Nobody was told.
  world.OnLoop([&] { world.hypervisor.guests.at(DomainNameOf(id)).devices.erase("vdb"); });
  world.hypervisor.Tell("", DomainEvent::Kind::kConnected);
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
}

TEST(MachineUpkeep, ADeviceThatTheGuestLetGoOfLateIsLeftToWhoeverAskedForThat) {
  MachineWorld world;
  world.Stop();
  world.options.give_back_after = Duration::Hours(1);
  world.Start();
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))), OkStatus());
  world.OnLoop([&] { world.hypervisor.lets_go = false; });
  EXPECT_TRUE(world.Await(world.host().DetachVolume(id, "data")).Is(Reason::kConflict));
  world.OnLoop([&] { world.hypervisor.Take(DomainNameOf(id), "vdb"); });
  world.Pass(Duration::Millis(50));
  EXPECT_FALSE(world.Has(id, "vdb"));
  EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")), OkStatus());

  // Nobody asks any more: it is the guest's again.
  world.Stop();
  world.options.give_back_after = Duration::Millis(20);
  world.Start();
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))), OkStatus());
  world.OnLoop([&] { world.hypervisor.Take(DomainNameOf(id), "vdb"); });
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
}

TEST(MachineUpkeep, AGuestWhoseDiskIsFullIsResumedUntilItRuns) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] {
    world.hypervisor.disk_is_full = true;
    world.hypervisor.Pause(DomainNameOf(id), PauseReason::kDiskFull);
  });
  ASSERT_TRUE(iri::Eventually(world, [&] { return Resumes(world, id) >= 3; }));
  const iri::MachineStatus status = world.Get(id).status;
  EXPECT_EQ(status.state, MachineState::kSuspended) << "an attempt is not shown";
  EXPECT_EQ(status.conditions[0].reason, "Paused");
  EXPECT_EQ(status.conditions[0].message,
            "the guest is paused: its disk cannot be written; it goes on when there is room again");
  const std::string events = world.Events();
  EXPECT_EQ(events.find("Paused: "), events.rfind("Paused: ")) << "said once: " << events;
  EXPECT_EQ(events.find("Resumed: "), std::string::npos) << events;

  // Somebody else goes on with it.
  world.Restart();
  EXPECT_EQ(world.Get(id).status.conditions[0].message, status.conditions[0].message);
  world.OnLoop([&] { world.hypervisor.disk_is_full = false; });
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(world.ReasonOf(id), "");
  EXPECT_NE(world.Events().find("Resumed: "), std::string::npos) << world.Events();
  EXPECT_EQ(Starts(world, id), 1);
}

TEST(MachineUpkeep, AGuestThatWasPausedForAnotherReasonIsLeftAlone) {
  for (const PauseReason reason : {PauseReason::kTold,
                                   PauseReason::kAsleep,
                                   PauseReason::kWatchdog,
                                   PauseReason::kLibvirtFailed}) {
    MachineWorld world;
    const std::string id = iri::Running(world, "u-1").metadata.id;
    world.OnLoop([&] { world.hypervisor.Pause(DomainNameOf(id), reason); });
    ASSERT_TRUE(world.Becomes(id, MachineState::kSuspended)) << PauseReasonText(reason);
    world.Restart();
    world.Pass(Duration::Millis(50));
    EXPECT_EQ(Resumes(world, id), 0) << PauseReasonText(reason);
    EXPECT_EQ(world.Get(id).status.state, MachineState::kSuspended);
    EXPECT_TRUE(world.Get(id).status.conditions[0].message.contains(PauseReasonText(reason)));
  }
}

TEST(MachineUpkeep, P3_3_AGuestThatMayMoveIsHeldOnlyBeforeItsFirstMoment) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.metadata.annotations = {
      {std::string(iri::kOnPoolLossAnnotation), std::string(iri::kOnPoolLossMove)}};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return Starts(world, id) == 1; }));
  world.Pass(Duration::Millis(50));
  EXPECT_EQ(Resumes(world, id), 0) << "its lease is not there";
  ASSERT_EQ(world.Await(world.host().ResumeGuest("u-1")), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  world.OnLoop([&] {
    world.hypervisor.disk_is_full = true;
    world.hypervisor.Pause(DomainNameOf(id), PauseReason::kDiskFull);
  });
  EXPECT_TRUE(world.Becomes(id, MachineState::kSuspended)) << "and not as one that never ran";
  world.OnLoop([&] { world.hypervisor.disk_is_full = false; });
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
}

TEST(DomainText, TellsDevicesOfOursFromThoseOfOthers) {
  // As libvirt gives them back.
  const std::string disk =
      "<disk type='file' device='disk'>\n<source file='/a' index='1'/>\n"
      "<target dev='vdb' bus='virtio'/>\n";
  const std::string nic =
      "<interface type='ethernet'>\n<mac address='52:54:00:00:00:01'/>\n<target dev='tap0'";
  const std::string xml = "<domain><devices>" + disk + "<serial>data</serial>\n</disk>" + nic +
                          " managed='no'/>\n</interface>" +
                          "<serial type='unix'/></devices></domain>";
  const DeviceElements devices = DevicesIn(xml);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices.at("vdb"), disk + "<serial>data</serial>\n</disk>");
  EXPECT_TRUE(IsOwnDevice(devices.at("vdb")));
  EXPECT_TRUE(IsOwnDevice(devices.at("52:54:00:00:00:01")));
  EXPECT_FALSE(IsOwnDevice(disk + "</disk>"));
  EXPECT_FALSE(IsOwnDevice(nic + "/></interface>"));
}

TEST(MachineUpkeep, ADoubtIsForGuestsThatAreAliveAndShallBe) {
  MachineRecord record;
  const Due all = {.match = true, .resume = true};
  const Observed runs = {.state = GuestState::kRunning};
  const Observed stopped = {.state = GuestState::kPaused, .pause = PauseReason::kDiskFull};
  EXPECT_EQ(NextStep(record, runs, all), MachineStep::kMatch);
  EXPECT_EQ(NextStep(record, stopped, all), MachineStep::kResume);
  EXPECT_EQ(NextStep(record, stopped, {.match = true}), MachineStep::kMatch);
  EXPECT_EQ(NextStep(record, stopped), MachineStep::kNone);
  EXPECT_EQ(NextStep(record, Observed(), all), MachineStep::kStart);
  record.object.spec.power = iri::Power::kOff;
  EXPECT_EQ(NextStep(record, stopped, all), MachineStep::kStop);
  record.object.metadata.deleted_at = WallTime::FromSeconds(1);
  EXPECT_EQ(NextStep(record, runs, all), MachineStep::kRemove);
}

}  // namespace
}  // namespace berth::runtime
