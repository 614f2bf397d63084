// SPDX-License-Identifier: Apache-2.0
// The machine runtime on a hypervisor that does what the test says: the contract of all runtimes,
// and what guests, hosts and libvirt do at the worst moment.
#include "runtime/machine/machine_host.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "image/layout_writer.h"
#include "iri/conformance/blocking.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "rt/asio/loop_thread.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/machine/fake_hypervisor.h"
#include "runtime/machine/fake_serial_lines.h"
#include "runtime/volume/fake_disks.h"
#include "runtime/volume/fake_images.h"
#include "runtime/volume/local_images.h"

namespace berth::runtime {
namespace {

using iri::MachineState;

class FakeNetworks final : public HostNetworks {
 public:
  Result<DomainNic> Describe(std::string_view machine_id,
                             const iri::MachineNic& nic) const override {
    DomainNic described;
    described.source = "br0";
    described.mac = MacOf(std::string(machine_id) + nic.name);
    return described;
  }
  rt::Task<Status> Plug(std::string machine_id, iri::MachineNic nic) override {
    plugged.insert(machine_id + "/" + nic.name);
    co_return OkStatus();
  }
  rt::Task<Status> Unplug(std::string machine_id, iri::MachineNic nic) override {
    plugged.erase(machine_id + "/" + nic.name);
    co_return OkStatus();
  }
  rt::Task<Status> Adopt(std::vector<PluggedNic> all) override {
    plugged.clear();
    for (const PluggedNic& one : all) plugged.insert(one.machine_id + "/" + one.nic.name);
    co_return OkStatus();
  }
  std::set<std::string> plugged;
};

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FakeDoors final : public ConsoleDoors {
 public:
  Result<std::string> Grant(Open open) override {
    doors.push_back(std::move(open));
    return "http://test/" + std::to_string(doors.size());
  }
  std::vector<Open> doors;
};

class MachineWorld final : public iri::RuntimeUnderTest {
 public:
  MachineWorld() {
    options.classes = *ParseMachineClasses(
        "classes:\n- {name: small, capabilities: {cpu: 1, memory: 64Mi}}\n"
        "- {name: large, capabilities: {cpu: 4, memory: 256Mi}}\n");
    options.total = {{"cpu", 4000}, {"memory", 1 << 30}, {"storage", 1 << 20}};
    options.boot_id = "boot-1";
    options.retry = {.initial = Duration::Millis(5), .max = Duration::Millis(20)};
    options.shutdown_grace = Duration::Millis(50);
    options.detach_limit = Duration::Millis(50);
    std::filesystem::create_directories(root + "/images");
    std::ofstream(root + "/volume.raw") << "disk";
    Start();
  }
  static std::string MakeRoot() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-machine-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }
  ~MachineWorld() override {
    Stop();
    std::filesystem::remove_all(root);
  }
  MachineWorld(const MachineWorld&) = delete;
  MachineWorld& operator=(const MachineWorld&) = delete;

  void Start() {
    GuestFolders::Places places;
    places.folder = root + "/machines";
    places.run_folder = root + "/run";
    auto folders = GuestFolders::Open(places, files_);
    CHECK(folders.ok()) << folders.status();
    folders_ = *std::move(folders);
    const MachineHost::Deps deps = {.loop = loop_.loop(),
                                    .hypervisor = hypervisor,
                                    .folders = *folders_,
                                    .disks = disks,
                                    .images = other_images != nullptr ? *other_images : images_,
                                    .networks = networks,
                                    .lines = lines,
                                    .doors = doors,
                                    .files = files_};
    auto host = loop_.Await(Begin(deps, options));
    CHECK(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  void Stop() {
    if (host_ == nullptr) return;
    CHECK(loop_.Await(host_->Stop()).ok());
    host_.reset();
    folders_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }

  iri::Runtimes runtimes() override {
    iri::Runtimes runtimes;
    runtimes.machine = host_.get();
    runtimes.host = host_.get();
    return runtimes;
  }
  Status Run(rt::Task<Status> task) override { return loop_.Await(std::move(task)); }
  void Pass(Duration duration) override { CHECK(loop_.Await(rt::Sleep(duration)).ok()); }
  Time Now() override { return loop_.loop().Now(); }
  iri::VolumeConnection Connection(const std::string& name, int64_t bytes) override {
    iri::VolumeConnection connection;
    connection.driver = iri::kFileDriver;
    connection.handle = "h-" + name;
    connection.attributes = {{std::string(iri::kPathAttribute), root + "/volume.raw"},
                             {std::string(iri::kFormatAttribute), std::string(iri::kRawFormat)}};
    connection.secret_data = {{"key", "secret"}};
    connection.effective_storage_bytes = bytes;
    return connection;
  }

  MachineHost& host() { return *host_; }
  template <class T>
  T Await(rt::Task<T> task) {
    return iri::Await(*this, std::move(task));
  }
  iri::Machine Wanted(const std::string& uid) { return iri::NewMachine(*this, uid); }
  iri::MachineVolume Volume(const std::string& name, const std::string& device) {
    iri::MachineVolume volume;
    volume.name = name;
    volume.device = device;
    volume.connection = Connection(name, 512);
    return volume;
  }
  iri::Machine Get(const std::string& id) { return *iri::GetMachine(*this, id); }
  bool Becomes(const std::string& id, MachineState state) {
    return iri::BecomesState(*this, id, state);
  }
  // Of the guest of this machine, on the loop.
  void End(const std::string& id, OffReason reason) {
    CHECK(Run(Ending(DomainNameOf(id), reason)).ok());
  }
  const FakeHypervisor::Guest& Guest(const std::string& id) {
    return hypervisor.guests.at(DomainNameOf(id));
  }
  std::string ReasonOf(const std::string& id) {
    const auto conditions = Get(id).status.conditions;
    return conditions.empty() ? "" : conditions[0].reason;
  }
  std::string Events() {
    std::string text;
    for (const iri::Event& event : *Await(host_->ListEvents(iri::EventFilter()))) {
      text += event.reason + ": " + event.message + "\n";
    }
    return text;
  }

 private:
  static rt::Task<Result<std::unique_ptr<MachineHost>>> Begin(MachineHost::Deps deps,
                                                              MachineHost::Options options) {
    return MachineHost::Start(deps, std::move(options));
  }
  rt::Task<Status> Ending(std::string name, OffReason reason) {
    hypervisor.End(name, reason);
    co_return OkStatus();
  }

 public:
  const std::string root = MakeRoot();
  MachineHost::Options options;

 private:
  rt::LoopThread loop_{"loop"};
  rt::ThreadPool files_{{.threads = 2, .queue_max = 1024, .name = "files"}};

 public:
  FakeHypervisor hypervisor{loop_.loop()};
  FakeDisks disks;
  FakeNetworks networks;
  FakeSerialLines lines;
  FakeDoors doors;
  ImageSource* other_images = nullptr;  // from the next start on; outlives this

 private:
  LocalImages images_{root + "/images", files_};
  std::unique_ptr<GuestFolders> folders_;
  std::unique_ptr<MachineHost> host_;
};

TEST(MachineHost, KeepsTheContractOfMachineRuntimes) {
  for (const iri::RuntimeContract& contract : iri::MachineContracts()) {
    SCOPED_TRACE(contract.name);
    MachineWorld world;
    contract.run(world);
  }
}

TEST(MachineHost, KeepsTheContractOfHostsAsFarAsItHasNoVolumesAndNoLeases) {
  int ran = 0;
  for (const iri::RuntimeContract& contract : iri::HostContracts()) {
    const std::string_view name = contract.name;
    if (name != "WatchAnswersALostCursorWithAResync" && name != "KeepsRoomForReservations")
      continue;
    SCOPED_TRACE(contract.name);
    MachineWorld world;
    contract.run(world);
    ++ran;
  }
  EXPECT_EQ(ran, 2);
}

TEST(MachineHost, P6_4_CreatesOnlyOnceByUid) {
  MachineWorld world;
  const auto first = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  const auto second = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->metadata.id, second->metadata.id);
  EXPECT_EQ(world.hypervisor.guests.size(), 1U);
}

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

TEST(MachineHost, P6_8_AGuestThatEndsStaysOffUntilItIsSwitchedOnAgain) {
  const struct {
    OffReason reason;
    MachineState state;
    std::string_view says;
  } kCases[] = {{OffReason::kShutDown, MachineState::kStopped, ""},
                {OffReason::kFailed, MachineState::kTerminated, "Crashed"},
                {OffReason::kDestroyed, MachineState::kTerminated, "Destroyed"}};
  for (const auto& c : kCases) {
    MachineWorld world;
    const std::string id = iri::Running(world, "u-1").metadata.id;
    world.End(id, c.reason);
    ASSERT_TRUE(world.Becomes(id, c.state)) << c.says;
    EXPECT_EQ(world.ReasonOf(id), c.says);
    world.Restart();
    EXPECT_EQ(world.Get(id).status.state, c.state) << "also after a restart";
    EXPECT_EQ(world.Guest(id).starts, 1);
    EXPECT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
    EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
    EXPECT_EQ(world.Guest(id).starts, 2);
    EXPECT_EQ(world.ReasonOf(id), "");
  }
}

TEST(MachineHost, AnImageOnItsWayIsShownUntilItIsThere) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.options.pull_interval = Duration();
  world.Start();
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume root;
  root.name = "root";
  root.device = "oda";
  root.local_disk = iri::LocalDisk{.size_bytes = 1 << 19, .image = "registry.test/os:1"};
  wanted.spec.volumes = {root};
  const auto created = world.Await(world.host().CreateMachine(wanted));
  ASSERT_TRUE(created.ok()) << created.status();
  const std::string id = created->metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "Pulling"; }));
  const iri::MachineStatus pulling = world.Get(id).status;
  EXPECT_EQ(pulling.state, MachineState::kPending);
  EXPECT_EQ(pulling.conditions[0].type, "ImageReady");
  EXPECT_EQ(pulling.conditions[0].status, "False");
  EXPECT_EQ(pulling.conditions[0].message, "25 % of 4.0 MiB");
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_EQ(world.ReasonOf(id), "ImageReady");
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
  MachineWorld world;
  world.Stop();
  world.options.start_pace = {.at_once = 1, .interval = Duration::Hours(1)};
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

TEST(MachineHost, AGuestHasTheDisksItWasStartedWithBeforeItIsAsked) {
  MachineWorld world;
  world.hypervisor.devices_failure = Unavailable("libvirt is busy");
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes.push_back(world.Volume("data", "odb"));
  const Result<iri::Machine> made = world.Await(world.host().CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world.Becomes(made->metadata.id, MachineState::kRunning));
  for (const iri::AttachmentStatus& volume : world.Get(made->metadata.id).status.volumes) {
    EXPECT_EQ(volume.state, iri::AttachmentState::kAttached) << volume.name;
  }
}

TEST(MachineHost, AGuestThatDoesNotHearItsPowerButtonLosesItsPlug) {
  MachineWorld world;
  world.hypervisor.heeds_power_button = false;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_EQ(world.Guest(id).domain.off_reason, OffReason::kDestroyed);
}

TEST(MachineHost, DeletionLeavesNothing) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume scratch;
  scratch.name = "scratch <&";
  scratch.device = "odb";
  scratch.local_disk = iri::LocalDisk{.size_bytes = 4096, .image = ""};
  wanted.spec.volumes = {scratch};
  iri::MachineNic nic;
  nic.name = "primary";
  wanted.spec.nics = {nic};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(world.networks.plugged.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(world.root + "/machines/" + id));
  ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return !iri::GetMachine(world, id).has_value(); }));
  EXPECT_TRUE(world.hypervisor.guests.empty());
  EXPECT_TRUE(world.networks.plugged.empty());
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + id));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/run/" + id));
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

TEST(MachineHost, P9_AnEncryptedVolumeNeedsItsKeyAndTheRightOne) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {world.Volume("data", "oda")};
  iri::VolumeConnection& connection = *wanted.spec.volumes[0].connection;
  connection.secret_data.clear();
  connection.attributes[std::string(iri::kFormatAttribute)] = iri::kLuksFormat;
  EXPECT_EQ(world.Await(world.host().CreateMachine(wanted)).status().reason(), Reason::kBadRequest);
  connection.encryption_data = {{std::string(iri::kEncryptionKeyEntry), "wrong"}};
  const auto made = world.Await(world.host().CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(
      iri::Eventually(world, [&] { return world.ReasonOf(made->metadata.id) == "Failed"; }));
  EXPECT_NE(world.Events().find("the key does not open the disk"), std::string::npos);
  // The cause goes.
  iri::MachineVolume right = wanted.spec.volumes[0];
  right.connection->encryption_data = {{std::string(iri::kEncryptionKeyEntry), "right"}};
  ASSERT_EQ(world.Await(world.host().UpdateVolume(made->metadata.id, right)), OkStatus());
  EXPECT_TRUE(world.Becomes(made->metadata.id, MachineState::kRunning));
  EXPECT_EQ(world.hypervisor.secrets.begin()->second, "right");
  EXPECT_EQ(world.Get(made->metadata.id).spec.volumes[0].connection->encryption_data,
            right.connection->encryption_data);
  ASSERT_EQ(world.Await(world.host().DeleteMachine(made->metadata.id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
  EXPECT_TRUE(world.hypervisor.secrets.empty());
}

TEST(MachineHost, P3_3_AGuestThatMayMoveStartsHeld) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.metadata.annotations = {
      {std::string(iri::kOnPoolLossAnnotation), std::string(iri::kOnPoolLossMove)}};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Guest(id).starts == 1; }));
  world.Pass(Duration::Millis(20));
  EXPECT_EQ(world.Guest(id).domain.state, GuestState::kPaused);
  EXPECT_EQ(world.Get(id).status.state, MachineState::kPending);
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-2")).reason(), Reason::kNotFound);
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-1")), OkStatus());
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-1")), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_EQ(world.Await(world.host().RenewLease(iri::LeaseRenewal())).status().reason(),
            Reason::kMethodNotSupported);
}

TEST(MachineHost, AGuestThatIsPausedSaysWhy) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  DomainEvent paused;
  paused.kind = DomainEvent::Kind::kPaused;
  paused.name = DomainNameOf(id);
  paused.detail = "its disk is full";
  world.hypervisor.Tell(paused);
  ASSERT_TRUE(world.Becomes(id, MachineState::kSuspended));
  EXPECT_EQ(world.ReasonOf(id), "Paused");
  EXPECT_EQ(world.Get(id).status.conditions[0].message, "the guest is paused: its disk is full");
  EXPECT_NE(world.Events().find("its disk is full"), std::string::npos);
  world.hypervisor.Tell(paused.name, DomainEvent::Kind::kResumed);
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_EQ(world.ReasonOf(id), "");
}

TEST(MachineHost, AGuestThatDoesNotLetGoKeepsItsDisk) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "oda"))), OkStatus());
  world.hypervisor.lets_go = false;
  EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")).reason(), Reason::kConflict);
  EXPECT_EQ(world.Get(id).spec.volumes.size(), 1U);
  world.hypervisor.lets_go = true;
  EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")), OkStatus());
  EXPECT_FALSE(world.Guest(id).devices.contains("vda"));
}

TEST(MachineHost, WhatCannotBeAttachedIsNotKept) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.hypervisor.attach_failure = Internal("no");
  EXPECT_FALSE(world.Await(world.host().AttachVolume(id, world.Volume("data", "oda"))).ok());
  EXPECT_TRUE(world.Get(id).spec.volumes.empty());
  world.hypervisor.attach_failure = OkStatus();
  EXPECT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "oda"))), OkStatus());
  EXPECT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("more", "oda"))).reason(),
            Reason::kBadRequest)
      << "the device is taken";
}

TEST(MachineHost, D2_ClassesShareOneHost) {
  MachineWorld world;
  iri::Machine large = world.Wanted("u-1");
  large.spec.class_name = "large";
  ASSERT_TRUE(world.Await(world.host().CreateMachine(large)).ok());
  const auto full = world.Await(world.host().CreateMachine(world.Wanted("u-2")));
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests);
  EXPECT_NE(full.status().message().find("1000 of cpu needed, 0 of 4000 left"),
            std::string_view::npos)
      << full.status();
  const auto capacity = world.Await(world.host().Capacity());
  EXPECT_EQ(capacity->used.at("cpu"), 4000);
  EXPECT_EQ(capacity->facts.at("machine-acceleration"), "tcg");
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

TEST(MachineHost, BadSpecsAreRefusedWithTheReason) {
  MachineWorld world;
  const struct {
    std::string_view says;
    std::function<void(iri::Machine&)> spoil;
  } kCases[] = {
      {"is not offered", [](iri::Machine& m) { m.spec.class_name = "none"; }},
      {"driver \"ceph\"", [](iri::Machine& m) { m.spec.volumes[0].connection->driver = "ceph"; }},
      {"absolute path",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["path"] = "x"; }},
      {"expected qcow2, raw or luks",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["format"] = "vmdk"; }},
      {"from oda to ody", [](iri::Machine& m) { m.spec.volumes[0].device = "sda"; }},
      {"is there twice", [](iri::Machine& m) { m.spec.volumes.push_back(m.spec.volumes[0]); }},
      {"a local disk or a connection",
       [](iri::Machine& m) { m.spec.volumes[0].connection.reset(); }},
      {"has no name", [](iri::Machine& m) { m.spec.volumes[0].name = ""; }},
      {"expected an absolute path of text",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["path"] = "/a\nb"; }},
  };
  for (const auto& c : kCases) {
    iri::Machine wanted = world.Wanted("u-1");
    wanted.spec.volumes = {world.Volume("data", "oda")};
    c.spoil(wanted);
    const auto made = world.Await(world.host().CreateMachine(wanted));
    EXPECT_EQ(made.status().reason(), Reason::kBadRequest) << c.says;
    EXPECT_NE(made.status().message().find(c.says), std::string_view::npos) << made.status();
  }
  EXPECT_TRUE(world.hypervisor.guests.empty());
}

TEST(MachineHost, AHostWithoutNetworksSaysSo) {
  const NoNetworks none;
  iri::MachineNic nic;
  nic.name = "primary";
  const auto refused = none.Describe("m-1", nic);
  EXPECT_EQ(refused.status().reason(), Reason::kBadRequest);
  EXPECT_NE(refused.status().message().find("no networks are configured"), std::string_view::npos);
}

TEST(MachineHost, AnImageThatIsAKernelIsBootedAndItsDiskIsEmpty) {
  MachineWorld world;
  std::filesystem::create_directories(world.root + "/images/demo");
  std::ofstream(world.root + "/images/demo/vmlinuz") << "kernel";
  std::ofstream(world.root + "/images/demo/cmdline") << "console=ttyS0 a&b\n";
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume disk;
  disk.name = "root";
  disk.device = "oda";
  disk.local_disk = iri::LocalDisk{.size_bytes = 4096, .image = "demo"};
  wanted.spec.volumes = {disk};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  const std::string& xml = world.Guest(id).xml;
  const std::string own = world.root + "/machines/" + id + "/vmlinuz";
  EXPECT_NE(xml.find(own + "</kernel>"), std::string::npos) << xml;
  EXPECT_EQ(std::filesystem::file_size(own), 6U) << "a copy: the image may go";
  EXPECT_NE(xml.find("<cmdline>console=ttyS0 a&amp;b</cmdline>"), std::string::npos) << xml;
  EXPECT_EQ(world.Get(id).status.image_ref, "demo");
  EXPECT_EQ(std::filesystem::file_size(world.root + "/machines/" + id + "/root.qcow2"), 4096U);
}

TEST(MachineHost, AnImageWithKernelAndDiskGivesBoth) {
  MachineWorld world;
  auto layout = image::LayoutWriter::Open(world.root + "/images/both");
  ASSERT_TRUE(layout.ok()) << layout.status();
  image::Manifest manifest;
  manifest.kernel = *layout->AddText(image::MediaTypeOf(image::Part::kKernel), "kernel");
  manifest.root_disk =
      *layout->AddText(image::MediaTypeOf(image::Part::kRootDisk), std::string(1024, 'd'));
  ASSERT_TRUE(layout->AddManifest(manifest, "", "").ok());
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume disk;
  disk.name = "root";
  disk.device = "oda";
  disk.local_disk = iri::LocalDisk{.size_bytes = 4096, .image = "both"};
  wanted.spec.volumes = {disk};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_NE(world.Guest(id).xml.find("</kernel>"), std::string::npos);
  std::ifstream made(world.root + "/machines/" + id + "/root.qcow2");
  const std::string content{std::istreambuf_iterator<char>(made), {}};
  EXPECT_TRUE(content.starts_with("dddd"));
  EXPECT_EQ(content.size(), 4096U);
}

// An image with a disk of so many bytes.
void MakeImage(const MachineWorld& world, const std::string& name, size_t bytes) {
  auto layout = image::LayoutWriter::Open(world.root + "/images/" + name);
  CHECK(layout.ok()) << layout.status();
  image::Manifest manifest;
  manifest.root_disk =
      *layout->AddText(image::MediaTypeOf(image::Part::kRootDisk), std::string(bytes, 'd'));
  CHECK(layout->AddManifest(manifest, "", "").ok());
}

TEST(MachineHost, P6_6_ALocalDiskWithTheSizeOfItsImageCountsAsThat) {
  MachineWorld world;
  MakeImage(world, "small", 600 << 10);
  const auto storage = [&world] {
    const auto used = world.Await(world.host().Capacity())->used;
    const auto found = used.find(iri::kStorage);
    return found == used.end() ? 0 : found->second;
  };
  iri::MachineVolume disk;
  disk.name = "root";
  disk.device = "oda";
  disk.local_disk = iri::LocalDisk{.size_bytes = 0, .image = "small"};
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {disk};
  const std::string first = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(first, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(storage(), 600 << 10);
  EXPECT_EQ(world.Get(first).spec.volumes, wanted.spec.volumes) << "as it was asked for";
  world.Restart();
  EXPECT_EQ(storage(), 600 << 10);

  // Of 1 MiB there is no room for another one, until the first goes.
  wanted.metadata.labels[std::string(iri::kMachineUidLabel)] = "u-2";
  const std::string second = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] {
    return world.Events().find("storage") != std::string::npos;
  })) << world.Events();
  EXPECT_EQ(world.Get(second).status.state, MachineState::kPending);
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + second + "/root.qcow2"));
  EXPECT_EQ(storage(), 600 << 10);
  ASSERT_EQ(world.Await(world.host().DeleteMachine(first)), OkStatus());
  ASSERT_TRUE(world.Becomes(second, MachineState::kRunning)) << world.Events();

  // And so for one that comes and goes while the guest runs.
  MakeImage(world, "tiny", 100 << 10);
  disk.name = "data";
  disk.device = "odb";
  disk.local_disk->image = "tiny";
  ASSERT_EQ(world.Await(world.host().AttachVolume(second, disk)), OkStatus());
  EXPECT_EQ(storage(), 700 << 10);
  disk.name = "more";
  disk.device = "odc";
  disk.local_disk->image = "small";
  EXPECT_FALSE(world.Await(world.host().AttachVolume(second, disk)).ok());
  EXPECT_EQ(storage(), 700 << 10);
  ASSERT_EQ(world.Await(world.host().DetachVolume(second, "data")), OkStatus());
  EXPECT_EQ(storage(), 600 << 10);
}

TEST(MachineHost, AMissingImageIsSaidAndRecoveredFrom) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume disk;
  disk.name = "root";
  disk.device = "oda";
  disk.local_disk = iri::LocalDisk{.size_bytes = 4096, .image = "late"};
  wanted.spec.volumes = {disk};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(
      world, [&] { return world.Events().find("image \"late\"") != std::string::npos; }));
  std::filesystem::create_directories(world.root + "/images/late");
  std::ofstream(world.root + "/images/late/vmlinuz") << "kernel";
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
}

TEST(MachineClasses, AreReadFromYamlAndErrorsNameThem) {
  const auto classes = ParseMachineClasses(
      "classes:\n- {name: a, capabilities: {cpu: 2, memory: 1Gi, gpu: 1}, firmware: efi}\n");
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_EQ(classes->front().machine_class.capabilities.at("gpu"), 1);
  EXPECT_EQ(classes->front().firmware, OfferedMachineClass::Firmware::kEfi);
  const struct {
    std::string_view yaml;
    std::string_view says;
  } kCases[] = {{"classes: []", "at least one class"},
                {"classes:\n- {name: a}", "capabilities"},
                {"classes:\n- {name: a, capabilities: {cpu: 1}}", "capabilities.memory is missing"},
                {"classes:\n- {name: a, capabilities: {cpu: 0, memory: 1}}", "capabilities.cpu"},
                {"classes:\n- {name: a, capabilities: {cpu: 1, memory: 1}, firmware: x}",
                 "expected bios or efi"},
                {"classes:\n- {name: a, more: 1}", "unknown field \"more\""}};
  for (const auto& c : kCases) {
    const auto refused = ParseMachineClasses(c.yaml);
    EXPECT_EQ(refused.status().reason(), Reason::kBadRequest) << c.yaml;
    EXPECT_NE(refused.status().message().find(c.says), std::string_view::npos) << refused.status();
  }
  EXPECT_EQ(PromisedAmount(100, 20, 1.5), 120);
  EXPECT_EQ(PromisedAmount(10, 20, 1.5), 0);
}

TEST(MachineHost, AConsoleIsSharedAndOpenedAgainForTheNextGuest) {
  MachineWorld world;
  const auto made = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  const iri::AttachRequest console{.machine_uid = "u-1", .what = "console"};
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const auto one = world.Await(world.host().Attach(console));
  const auto two = world.Await(world.host().Attach(console));
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  ASSERT_EQ(world.lines.wires.size(), 1U) << "one line for both";
  EXPECT_TRUE(world.lines.wires[0]->socket.ends_with("/run/" + id + "/console.sock"));
  for (const auto& viewer : {one->get(), two->get()}) {
    ASSERT_TRUE(world.Run(viewer->Close()).ok());
  }
  const auto three = world.Await(world.host().Attach(console));
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(world.lines.wires.size(), 2U);
  ASSERT_TRUE(world.Run((*three)->Close()).ok());

  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_TRUE(world.Await(world.host().Attach(console)).status().Is(Reason::kConflict));
  const iri::AttachRequest shell{.machine_uid = "u-1", .what = "exec"};
  EXPECT_TRUE(world.Await(world.host().Attach(shell)).status().Is(Reason::kMethodNotSupported));
}

TEST(MachineHost, AUrlOpensTheConsoleOfAGuestThatRuns) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_TRUE(world.Await(world.host().Exec(id)).ok());
  ASSERT_EQ(world.doors.doors.size(), 1U);
  const auto console = world.Await(world.doors.doors[0]());
  ASSERT_TRUE(console.ok()) << console.status();
  ASSERT_EQ(world.lines.wires.size(), 1U);
  ASSERT_TRUE(world.Run((*console)->Close()).ok());
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_TRUE(world.Await(world.host().Exec(id)).status().Is(Reason::kConflict));
  EXPECT_TRUE(world.Await(world.doors.doors[0]()).status().Is(Reason::kConflict)) << "it is off";
}

TEST(MachineHost, EfiVariablesAreThereBeforeTheGuestIs) {
  MachineWorld world;
  world.Stop();
  world.options.classes = *ParseMachineClasses(
      "classes:\n- {name: bios, capabilities: {cpu: 1, memory: 64Mi}}\n"
      "- {name: efi, capabilities: {cpu: 1, memory: 64Mi}, firmware: efi}\n");
  world.Start();
  iri::Machine wanted = world.Wanted("u-1");
  const std::string key(iri::kEfiVariablesAnnotation);
  const std::string uuid = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
  wanted.spec.class_name = "bios";
  wanted.metadata.annotations[key] = uuid + " Name value-of-the-spec\n";
  const auto refused = world.Await(world.host().CreateMachine(wanted));
  EXPECT_EQ(refused.status().reason(), Reason::kBadRequest);
  EXPECT_TRUE(refused.status().message().contains("no EFI firmware")) << refused.status();
  wanted.spec.class_name = "efi";
  wanted.metadata.annotations[key] = "8be4df61 Name value\n";
  EXPECT_TRUE(world.Await(world.host().CreateMachine(wanted))
                  .status()
                  .message()
                  .contains("efiVars[0]: uuid \"8be4df61\""));
  EXPECT_TRUE(world.hypervisor.guests.empty());

  wanted.metadata.annotations[key] = uuid + " Name value-of-the-spec\n";
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const std::string path = world.root + "/machines/" + id + "/efi-variables.fd";
  EXPECT_TRUE(FileText(path).contains("value-of-the-spec"));
  // What the firmware has done with it since stays, until the spec says something else.
  std::filesystem::copy_file(
      world.options.efi_variables, path, std::filesystem::copy_options::overwrite_existing);
  const auto start_again = [&] {
    ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
    ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
    world.Restart();
    ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)).ok());
    ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  };
  start_again();
  EXPECT_FALSE(FileText(path).contains("value-of-the-spec"));
  iri::StringMap other = {{key, "x"}};
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, other)).ok());
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped)) << "it can be switched off all the same";
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)).ok());
  ASSERT_TRUE(iri::Eventually(world, [&] {
    const auto conditions = world.Get(id).status.conditions;
    return !conditions.empty() && conditions.front().message.contains("efiVars[0]");
  }));
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, {})).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  other[key] = uuid + " Name another-value\n";
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, other)).ok());
  EXPECT_FALSE(FileText(path).contains("another-value")) << "it is the firmware's while it runs";
  start_again();
  EXPECT_TRUE(FileText(path).contains("another-value"));
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
