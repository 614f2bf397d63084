// SPDX-License-Identifier: Apache-2.0
// Defends: guests get the disks that they were asked for, filled from images and counted, and what
// is wrong with a disk or an image is said.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "image/layout_writer.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "rt/deadline.h"
#include "rt/scope.h"
#include "runtime/machine/machine_world.h"
#include "runtime/volume/fake_images.h"

namespace berth::runtime {
namespace {

using iri::MachineState;

// An image with a disk of so many bytes.
void MakeImage(const MachineWorld& world, const std::string& name, size_t bytes) {
  auto layout = image::LayoutWriter::Open(world.root + "/images/" + name);
  CHECK(layout.ok()) << layout.status();
  image::Manifest manifest;
  manifest.root_disk =
      *layout->AddText(image::MediaTypeOf(image::Part::kRootDisk), std::string(bytes, 'd'));
  CHECK(layout->AddManifest(manifest, "", "").ok());
}

// What the machine says of this; "" if it says nothing.
std::string MessageOf(MachineWorld& world, const std::string& id, std::string_view type) {
  for (const iri::MachineCondition& condition : world.Get(id).status.conditions) {
    if (condition.type == type) return condition.message;
  }
  return {};
}

TEST(MachineHost, AnImageOnItsWayIsShownUntilItIsThere) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.options.pull_interval = Duration();
  world.Start();
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume root = LocalDisk("root", "oda", 1 << 19, "registry.test/os:1");
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

TEST(MachineHost, AGuestThatDoesNotLetGoKeepsItsDisk) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "oda"))), OkStatus());
  world.hypervisor.lets_go = false;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")).reason(), Reason::kConflict);
  }
  EXPECT_EQ(world.Get(id).spec.volumes.size(), 1U);
  const std::string events = world.Events();
  const std::string refusal = "Failed: volume \"data\": the guest does not let go of vda";
  EXPECT_NE(events.find(refusal), std::string::npos) << events;
  EXPECT_EQ(events.find(refusal), events.rfind(refusal)) << "said once: " << events;
  world.hypervisor.lets_go = true;
  EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")), OkStatus());
  EXPECT_FALSE(world.Guest(id).devices.contains("vda"));
}

// The poollet asks for events when something has changed, and else every ten seconds.
TEST(MachineHost, ADetachThatTheGuestRefusesIsAChangeSoThatItsEventIsHeardAtOnce) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "oda"))), OkStatus());
  const auto watch = world.Await(world.host().Watch(""));
  ASSERT_TRUE(watch.ok()) << watch.status();
  ASSERT_EQ(world.Await((*watch)->Next())->type, iri::ChangeType::kResync);
  world.hypervisor.lets_go = false;
  EXPECT_EQ(world.Await(world.host().DetachVolume(id, "data")).reason(), Reason::kConflict);
  iri::Change change;
  while (change.what != "detach") {
    const auto next = world.Await(rt::WithDeadline((*watch)->Next(), Duration::Seconds(10)));
    ASSERT_TRUE(next.ok()) << next.status();
    change = *next;
  }
  EXPECT_EQ(change.uid, "u-1");
  EXPECT_EQ(world.Await((*watch)->Close()), OkStatus());
}

// Creates a machine while another one is to get a volume, which an image is in the way of.
rt::Task<Status> CreateBeside(MachineHost* host,
                              FakeImages* images,
                              std::string other,
                              iri::MachineVolume volume,
                              iri::Machine wanted) {
  rt::TaskScope scope((co_await rt::CurrentContext{}).loop());
  scope.Spawn("attach", host->AttachVolume(std::move(other), std::move(volume)));
  CO_TRY_STATUS(co_await images->Asked());
  const auto made =
      co_await rt::WithDeadline(host->CreateMachine(std::move(wanted)), Duration::Seconds(10));
  CO_TRY_STATUS(co_await scope.Close());
  co_return made.status();
}

TEST(MachineHost, NobodyWaitsForTheImageOfAnothersDisk) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.Start();
  const std::string running = iri::Running(world, "u-1").metadata.id;
  EXPECT_EQ(world.Run(CreateBeside(&world.host(),
                                   &images,
                                   running,
                                   LocalDisk("more", "odb", 4096, "registry.test/os:1"),
                                   world.Wanted("u-2"))),
            OkStatus());
  iri::Machine pulling = world.Wanted("u-3");
  pulling.spec.volumes = {LocalDisk("root", "oda", 4096, "registry.test/os:1")};
  const auto made = world.Await(world.host().CreateMachine(pulling));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(world.Run(CreateBeside(&world.host(),
                                   &images,
                                   made->metadata.id,
                                   world.Volume("data", "odb"),
                                   world.Wanted("u-4"))),
            OkStatus());
}

// Within the time that a caller has.
Status Soon(MachineWorld& world, rt::Task<Status> call) {
  return world.Run(rt::WithDeadline(std::move(call), Duration::Seconds(10)));
}

// A machine whose disk is of an image that stays on its way.
std::string Pulling(MachineWorld& world, FakeImages& images) {
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {LocalDisk("root", "oda", 4096, "registry.test/os:1")};
  const auto made = world.Await(world.host().CreateMachine(wanted));
  CHECK(made.ok()) << made.status();
  CHECK(world.Run(images.Asked()).ok());
  return made->metadata.id;
}

TEST(MachineHost, AMachineIsDeletedWhileItsImageIsPulled) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.Start();
  const std::string id = Pulling(world, images);
  EXPECT_EQ(Soon(world, world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + id));
}

TEST(MachineHost, AMachineIsSwitchedOffWhileItsImageIsPulled) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.options.pull_interval = Duration();
  world.Start();
  const std::string id = Pulling(world, images);
  EXPECT_EQ(Soon(world, world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id).empty(); })) << "not Pulling";
  // It is pulled again when it is wanted again.
  ASSERT_EQ(Soon(world, world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "Pulling"; }));
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
}

TEST(MachineHost, AMachineIsChangedWhileItsImageIsPulled) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.Start();
  const std::string id = Pulling(world, images);
  EXPECT_EQ(Soon(world, world.host().UpdateMachineAnnotations(id, {{"a", "b"}})), OkStatus());
  EXPECT_EQ(Soon(world, world.host().AttachVolume(id, LocalDisk("more", "odb", 4096, ""))),
            OkStatus());
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_TRUE(world.Has(id, "vdb")) << "from the start";
  EXPECT_TRUE(std::filesystem::exists(world.root + "/machines/" + id + "/more.qcow2"));
}

TEST(MachineHost, ADiskInTheMiddleOfItsCopyIsInNobodysWay) {
  rt::Event go_on;
  MachineWorld world;
  MakeImage(world, "os", 2048);
  world.OnLoop([&] { world.disks.copies_go_on = &go_on; });
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {LocalDisk("root", "oda", 4096, "os")};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  const std::string part = world.root + "/machines/" + id + "/root.qcow2.part";
  const auto is_there = [&part] { return std::filesystem::exists(part); };
  ASSERT_TRUE(iri::Eventually(world, is_there));
  ASSERT_EQ(Soon(world, world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return !is_there(); })) << "nothing is left";
  ASSERT_EQ(Soon(world, world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  ASSERT_TRUE(iri::Eventually(world, is_there));
  ASSERT_EQ(Soon(world, world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.hypervisor.guests.empty(); }));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + id));
}

TEST(MachineHost, ARunningGuestGetsTheDiskOfAnImageWhenThatIsThere) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.Start();
  const std::string id = iri::Running(world, "u-1").metadata.id;
  const iri::MachineVolume disk = LocalDisk("more", "odb", 4096, "registry.test/data:1");
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, disk)), OkStatus());
  ASSERT_EQ(world.Run(images.Asked()), OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] {
    return world.Get(id).status.volumes[0].state == iri::AttachmentState::kPending;
  }));
  EXPECT_EQ(world.Get(id).spec.volumes, std::vector<iri::MachineVolume>{disk});
  // What its guest does is not held up.
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, world.Volume("data", "odc"))), OkStatus());
  EXPECT_TRUE(world.Has(id, "vdc"));
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
  EXPECT_TRUE(std::filesystem::exists(world.root + "/machines/" + id + "/more.qcow2"));
}

TEST(MachineHost, ADiskThatIsToComeIsMadeAfterARestart) {
  FakeImages images;
  MachineWorld world;
  world.Stop();
  world.other_images = &images;
  world.Start();
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, LocalDisk("more", "odb", 4096, "late:1"))),
            OkStatus());
  world.Restart();
  ASSERT_EQ(world.Run(images.Arrive()), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
}

TEST(MachineHost, ADiskThatIsTakenBackWhileItIsMadeLeavesNothing) {
  rt::Event go_on;
  MachineWorld world;
  MakeImage(world, "os", 2048);
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] { world.disks.copies_go_on = &go_on; });
  const std::string whole = world.root + "/machines/" + id + "/more.qcow2";
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, LocalDisk("more", "odb", 4096, "os"))),
            OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] { return std::filesystem::exists(whole + ".part"); }));
  ASSERT_EQ(Soon(world, world.host().DetachVolume(id, "more")), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return !std::filesystem::exists(whole + ".part"); }));
  EXPECT_FALSE(std::filesystem::exists(whole));
  EXPECT_EQ(world.Await(world.host().Capacity())->used.at(std::string(iri::kStorage)), 0);
  // Another one of the same name is not taken for it.
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, LocalDisk("more", "odb", 8192, ""))),
            OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
  EXPECT_EQ(std::filesystem::file_size(whole), 8192U);
}

TEST(MachineHost, ALateDiskThatCannotBeMadeIsSaidOnceAndTriedAgain) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(Soon(world, world.host().AttachVolume(id, LocalDisk("more", "odb", 4096, "late"))),
            OkStatus());
  ASSERT_TRUE(iri::Eventually(
      world, [&] { return MessageOf(world, id, "DevicesReady").contains("image \"late\""); }));
  EXPECT_TRUE(MessageOf(world, id, "ImageReady").contains("image \"late\""));
  world.Pass(Duration::Millis(50));  // two attempts and more
  const std::string events = world.Events();
  EXPECT_EQ(events.find("image \"late\""), events.rfind("image \"late\"")) << events;
  MakeImage(world, "late", 2048);
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Has(id, "vdb"); })) << world.Events();
  EXPECT_TRUE(iri::Eventually(world, [&] { return MessageOf(world, id, "DevicesReady").empty(); }));
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

TEST(MachineHost, AnImageThatIsAKernelIsBootedAndItsDiskIsEmpty) {
  MachineWorld world;
  std::filesystem::create_directories(world.root + "/images/demo");
  std::ofstream(world.root + "/images/demo/vmlinuz") << "kernel";
  std::ofstream(world.root + "/images/demo/cmdline") << "console=ttyS0 a&b\n";
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume disk = LocalDisk("root", "oda", 4096, "demo");
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
  iri::MachineVolume disk = LocalDisk("root", "oda", 4096, "both");
  wanted.spec.volumes = {disk};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_NE(world.Guest(id).xml.find("</kernel>"), std::string::npos);
  std::ifstream made(world.root + "/machines/" + id + "/root.qcow2");
  const std::string content{std::istreambuf_iterator<char>(made), {}};
  EXPECT_TRUE(content.starts_with("dddd"));
  EXPECT_EQ(content.size(), 4096U);
}

TEST(MachineHost, P6_6_ALocalDiskWithTheSizeOfItsImageCountsAsThat) {
  MachineWorld world;
  MakeImage(world, "small", 600 << 10);
  const auto storage = [&world] {
    const auto used = world.Await(world.host().Capacity())->used;
    const auto found = used.find(iri::kStorage);
    return found == used.end() ? 0 : found->second;
  };
  iri::MachineVolume disk = LocalDisk("root", "oda", 0, "small");
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
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Has(second, "vdb"); })) << world.Events();
  EXPECT_EQ(storage(), 700 << 10);
  disk.name = "more";
  disk.device = "odc";
  disk.local_disk->image = "small";
  ASSERT_EQ(world.Await(world.host().AttachVolume(second, disk)), OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] {
    return MessageOf(world, second, "DevicesReady").contains("storage");
  })) << "it waits for room";
  EXPECT_EQ(storage(), 700 << 10);
  ASSERT_EQ(world.Await(world.host().DetachVolume(second, "more")), OkStatus());
  ASSERT_EQ(world.Await(world.host().DetachVolume(second, "data")), OkStatus());
  EXPECT_EQ(storage(), 600 << 10);
}

TEST(MachineHost, AMissingImageIsSaidAndRecoveredFrom) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  iri::MachineVolume disk = LocalDisk("root", "oda", 4096, "late");
  wanted.spec.volumes = {disk};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(
      world, [&] { return world.Events().find("image \"late\"") != std::string::npos; }));
  std::filesystem::create_directories(world.root + "/images/late");
  std::ofstream(world.root + "/images/late/vmlinuz") << "kernel";
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
}

}  // namespace
}  // namespace berth::runtime
