// SPDX-License-Identifier: Apache-2.0
// The demo guest is put together from files that are there, in the order that a kernel needs. That
// it boots is for tests with a hypervisor.
#include "image/demo/demo_guest.h"

#include <gtest/gtest.h>

#include <array>

#include "image/demo/cpio_archive.h"
#include "image/demo/kernel_modules.h"
#include "image/testing/temporary_folder.h"

namespace berth::image {
namespace {

TEST(KernelModules, TheNewestKernelForCloudsIsChosen) {
  EXPECT_EQ(ChooseKernel({"vmlinuz-6.1.0-9-cloud-amd64",
                          "vmlinuz-6.1.0-18-cloud-amd64",
                          "vmlinuz-6.12.0-1-amd64",
                          "initrd.img-9"}),
            "vmlinuz-6.1.0-18-cloud-amd64");
  EXPECT_EQ(ChooseKernel({"vmlinuz-6.9.0", "vmlinuz-6.10.0"}), "vmlinuz-6.10.0");
  EXPECT_EQ(ChooseKernel({"System.map"}), "");
}

TEST(KernelModules, EachIsLoadedBehindThoseThatItNeeds) {
  constexpr std::string_view kDependencies =
      "kernel/net/virtio-net.ko: kernel/net/failover.ko kernel/virtio/ring.ko "
      "kernel/virtio/virtio.ko\n"
      "kernel/virtio/ring.ko: kernel/virtio/virtio.ko\n"
      "kernel/virtio/virtio.ko:\n"
      "nonsense\n";
  constexpr std::array<std::string_view, 3> kWanted = {"ring", "built_in", "virtio_net"};
  EXPECT_EQ(LoadOrder(kDependencies, kWanted),
            (std::vector<std::string>{"kernel/virtio/virtio.ko",
                                      "kernel/virtio/ring.ko",
                                      "kernel/net/failover.ko",
                                      "kernel/net/virtio-net.ko"}));
}

TEST(CpioArchive, IsAlignedAndEndsAsTheFormatSays) {
  CpioArchive archive;
  archive.AddFolder("bin");
  archive.AddFile("bin/x", "12345", 0755);
  const std::string bytes = archive.Finish();
  EXPECT_EQ(bytes.size() % 4, 0U);
  EXPECT_TRUE(bytes.starts_with("07070100000001000041ED"));
  EXPECT_NE(bytes.find("000081ED"), std::string::npos);
  EXPECT_NE(bytes.find(std::string("12345\0\0\0", 8) + "070701"), std::string::npos);
  EXPECT_NE(bytes.find("TRAILER!!!"), std::string::npos);
}

class DemoGuestTest : public testing::Test {
 protected:
  DemoGuestTest() {
    sources_ = {.boot_folder = folder_.Sub("boot"),
                .modules_folder = folder_.Sub("modules"),
                .busybox = folder_.Sub("busybox")};
    std::filesystem::create_directories(sources_.boot_folder);
  }
  TemporaryFolder folder_;
  DemoSources sources_;
};

TEST_F(DemoGuestTest, IsMadeOfKernelModulesAndBusybox) {
  folder_.Write("boot/vmlinuz-6.1-cloud", "kernel");
  folder_.Write("busybox", "BUSYBOX");
  folder_.Write("modules/6.1-cloud/modules.dep", "kernel/virtio_blk.ko: kernel/virtio.ko\n");
  folder_.Write("modules/6.1-cloud/kernel/virtio_blk.ko", "BLOCK");
  folder_.Write("modules/6.1-cloud/kernel/virtio.ko", "VIRTIO");
  const auto guest = MakeDemoGuest(sources_);
  ASSERT_TRUE(guest.ok()) << guest.status();
  EXPECT_EQ(guest->kernel, folder_.Sub("boot/vmlinuz-6.1-cloud"));
  EXPECT_EQ(guest->version, "6.1-cloud");
  for (const std::string_view part :
       {"BUSYBOX", "BLOCK", "VIRTIO", "virtio.ko\nvirtio_blk.ko\n", "Hello from Berth!"}) {
    EXPECT_NE(guest->initramfs.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(guest->initramfs, MakeDemoGuest(sources_)->initramfs)
      << "the same files, the same bytes";
}

TEST_F(DemoGuestTest, WhatIsMissingIsNamedWithItsPackage) {
  EXPECT_NE(MakeDemoGuest(sources_).status().message().find("linux-image-cloud-amd64"),
            std::string_view::npos);
  folder_.Write("boot/vmlinuz-6.1-cloud", "kernel");
  EXPECT_NE(MakeDemoGuest(sources_).status().message().find("busybox-static"),
            std::string_view::npos);
}

TEST(DemoBootBlock, IsOneSectorThatAPcStarts) {
  const std::string block = DemoBootBlock();
  EXPECT_EQ(block.size(), 512U);
  EXPECT_TRUE(block.ends_with("\x55\xaa"));
}

}  // namespace
}  // namespace berth::image
