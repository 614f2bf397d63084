// SPDX-License-Identifier: Apache-2.0
// Defends: a guest boots the CD or the unified kernel image of its image, has the squashfs beside
// its kernel, all of that is counted, and what cannot boot is refused by its type.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "image/layout_writer.h"
#include "iri/local_disk.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

using image::Part;
using iri::MachineState;

void MakeImage(const MachineWorld& world,
               const std::string& name,
               const std::vector<std::pair<Part, std::string>>& parts) {
  auto layout = image::LayoutWriter::Open(world.root + "/images/" + name);
  CHECK(layout.ok()) << layout.status();
  image::Manifest manifest;
  for (const auto& [part, text] : parts) {
    manifest.At(part) = *layout->AddText(image::MediaTypeOf(part), text);
  }
  CHECK(layout->AddManifest(manifest, "", "").ok());
}

iri::Machine Booting(MachineWorld& world, const std::string& uid, const std::string& image) {
  iri::Machine wanted = world.Wanted(uid);
  wanted.spec.volumes = {LocalDisk("root", "oda", 4096, image)};
  return *world.Await(world.host().CreateMachine(wanted));
}

int64_t StorageUsed(MachineWorld& world) {
  const auto used = world.Await(world.host().Capacity())->used;
  const auto found = used.find(iri::kStorage);
  return found == used.end() ? 0 : found->second;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// With a class whose machines have EFI firmware.
void OfferEfi(MachineWorld& world) {
  world.Stop();
  world.options.classes = *ParseMachineClasses(
      "classes:\n- {name: small, capabilities: {cpu: 1, memory: 64Mi}, firmware: efi}\n");
  world.Start();
}

TEST(MachineMedia, ACdBootsBehindTheDiskAndIsCounted) {
  MachineWorld world;
  MakeImage(world, "installer", {{Part::kIso, std::string(10000, 'i')}});
  const std::string id = Booting(world, "u-1", "installer").metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  const std::string iso = world.root + "/machines/" + id + "/boot.iso";
  EXPECT_EQ(FileText(iso), std::string(10000, 'i'));
  const std::string xml = world.Guest(id).xml;
  EXPECT_TRUE(Has(xml, "device=\"cdrom\"")) << xml;
  EXPECT_TRUE(Has(xml, "<source file=\"" + iso + "\"/>")) << xml;
  EXPECT_TRUE(Has(xml, "<boot order=\"2\"/>")) << xml;
  EXPECT_LT(xml.find("<boot order=\"1\"/>"), xml.find("cdrom")) << "an installed disk boots first";
  EXPECT_EQ(StorageUsed(world), 4096 + 10000);
  // It has its copy, and needs the image no more.
  std::filesystem::remove_all(world.root + "/images/installer");
  world.Restart();
  EXPECT_EQ(StorageUsed(world), 4096 + 10000);
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_TRUE(Has(world.Guest(id).xml, "cdrom"));
  EXPECT_EQ(StorageUsed(world), 4096 + 10000) << "counted once";
  ASSERT_EQ(world.Await(world.host().DeleteMachine(id)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return StorageUsed(world) == 0; }));
  EXPECT_FALSE(std::filesystem::exists(iso));
}

TEST(MachineMedia, ASquashfsIsAReadOnlyDiskBesideTheKernel) {
  MachineWorld world;
  MakeImage(world, "live", {{Part::kKernel, "kernel"}, {Part::kSquashfs, "hsqs"}});
  const std::string id = Booting(world, "u-1", "live").metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  const std::string xml = world.Guest(id).xml;
  const size_t disk = xml.find("<target dev=\"vdaa\" bus=\"virtio\"/>");
  ASSERT_NE(disk, std::string::npos) << xml;
  EXPECT_TRUE(xml.substr(disk).starts_with(
      "<target dev=\"vdaa\" bus=\"virtio\"/><readonly/><serial>squashfs</serial></disk>"))
      << xml;
  EXPECT_FALSE(Has(xml, "<boot"));
  EXPECT_EQ(FileText(world.root + "/machines/" + id + "/root.squashfs"), "hsqs");
  // Whoever compares its devices with its record leaves it alone, also after a restart.
  world.Restart();
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_TRUE(world.Guest(id).devices.contains("vdaa"));
}

TEST(MachineMedia, AUnifiedKernelImageBootsUnderEfiFirmware) {
  MachineWorld world;
  OfferEfi(world);
  MakeImage(world, "unified", {{Part::kUki, "MZ"}});
  const std::string id = Booting(world, "u-1", "unified").metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  const std::string xml = world.Guest(id).xml;
  EXPECT_TRUE(Has(xml, "<kernel>" + world.root + "/machines/" + id + "/vmlinuz</kernel></os>"))
      << "with its own initramfs and command line: " << xml;
  EXPECT_TRUE(Has(xml, "<loader"));
}

TEST(MachineMedia, AUnifiedKernelImageIsRefusedByItsTypeUnderBios) {
  MachineWorld world;
  MakeImage(world, "unified", {{Part::kUki, "MZ"}});
  const std::string id = Booting(world, "u-1", "unified").metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "ImageInvalid"; }));
  const std::string why = world.Get(id).status.conditions[0].message;
  EXPECT_TRUE(Has(why, "image \"unified\": its layer of type application/vnd.ironcore.image.uki"))
      << why;
  EXPECT_TRUE(Has(why, "machines of class \"small\"")) << why;
  EXPECT_TRUE(Has(why, "firmware: efi")) << why;
  // The cause goes.
  std::filesystem::remove_all(world.root + "/images/unified");
  MakeImage(world, "unified", {{Part::kUki, "MZ"}, {Part::kRootDisk, std::string(512, 'd')}});
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_FALSE(Has(world.Guest(id).xml, "<kernel>")) << "the disk boots";
}

TEST(MachineMedia, ThereMustBeRoomForTheCopy) {
  MachineWorld world;  // with a mebibyte for disks
  MakeImage(world, "installer", {{Part::kIso, std::string(2 << 20, 'i')}});
  const std::string id = Booting(world, "u-1", "installer").metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "NoRoomForImage"; }));
  EXPECT_FALSE(std::filesystem::exists(world.root + "/machines/" + id + "/boot.iso"));
  EXPECT_EQ(StorageUsed(world), 4096);
}

TEST(MachineMedia, TheMediaOfTwoImagesCountBoth) {
  MachineWorld world;
  MakeImage(world, "installer", {{Part::kIso, std::string(10000, 'i')}});
  MakeImage(world, "live", {{Part::kKernel, "kernel"}, {Part::kSquashfs, std::string(5000, 's')}});
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.volumes = {LocalDisk("root", "oda", 4096, "installer"),
                         LocalDisk("more", "odb", 4096, "live")};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(StorageUsed(world), 2 * 4096 + 10000 + 5000);
}

TEST(MachineMedia, WhatIsNotCopiedIsNotCounted) {
  MachineWorld world;
  const std::string id = Booting(world, "u-1", "installer").metadata.id;
  // Its copy cannot be put in its place.
  std::filesystem::create_directories(world.root + "/machines/" + id + "/boot.iso/inside");
  MakeImage(world, "installer", {{Part::kIso, std::string(10000, 'i')}});
  ASSERT_TRUE(iri::Eventually(world, [&] { return StorageUsed(world) == 4096 + 10000; }))
      << world.Events();
  // The image is another one.
  std::filesystem::remove_all(world.root + "/images/installer");
  MakeImage(world, "installer", {{Part::kRootDisk, std::string(512, 'd')}});
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_EQ(StorageUsed(world), 4096);
}

TEST(MachineMedia, AnImageIsSaidToBeThereBeforeTheGuestRuns) {
  MachineWorld world;
  MakeImage(world, "live", {{Part::kKernel, "kernel"}});
  world.OnLoop([&] { world.hypervisor.start_failure = Internal("not yet"); });
  const std::string id = Booting(world, "u-1", "live").metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "ImageReady"; }));
  const auto conditions = world.Get(id).status.conditions;
  EXPECT_EQ(conditions[0].status, "True");
  EXPECT_EQ(world.Get(id).status.state, MachineState::kPending);
  world.OnLoop([&] { world.hypervisor.start_failure = OkStatus(); });
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
}

TEST(MachineMedia, ARunningMachineGetsItsCdAtTheNextStart) {
  MachineWorld world;
  MakeImage(world, "installer", {{Part::kIso, "iso"}});
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, LocalDisk("more", "odb", 4096, "installer"))),
            OkStatus());
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.ReasonOf(id) == "ImageInvalid"; }));
  const std::string why = world.Get(id).status.conditions[0].message;
  EXPECT_TRUE(Has(why, "application/vnd.ironcore.image.iso")) << why;
  EXPECT_TRUE(Has(why, "switched off and on")) << why;
  EXPECT_FALSE(world.Has(id, "vdb"));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  EXPECT_TRUE(Has(world.Guest(id).xml, world.root + "/machines/" + id + "/boot.iso"));
}

TEST(MachineRecord, RemembersWhatItsMediaTake) {
  MachineRecord record;
  record.object.metadata.id = "m-1";
  record.media_bytes = 7;
  const Result<MachineRecord> again = MachineRecordOf(ToText(record));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, record);
}

}  // namespace
}  // namespace berth::runtime
