// SPDX-License-Identifier: Apache-2.0
// What `berth image` builds is listed and removed; mistakes say what to do, and leave nothing.
#include "app/images/image_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "cli/session/program.h"
#include "cli/testing/fake_program.h"

namespace berth::app {
namespace {

class ImageCommandTest : public testing::Test {
 protected:
  ImageCommandTest() {
    Write("boot/vmlinuz-6.1-cloud", "the kernel");
    Write("busybox", "BUSYBOX");
    Write("modules/6.1-cloud/modules.dep", "kernel/virtio_blk.ko:\n");
    Write("modules/6.1-cloud/kernel/virtio_blk.ko", "BLOCK");
    // Stands for mke2fs: the disk is the last word but one.
    program_.environment.run_program = [this](const std::vector<std::string>& words) {
      if (!has_mke2fs_) return NotFound("mke2fs: not found");
      std::ofstream(words.at(words.size() - 2)) << std::string(4096, 'e');
      return OkStatus();
    };
  }
  void Write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(
        std::filesystem::path(program_.folder() + "/" + name).parent_path());
    program_.Write(name, text);
  }
  cli::FakeProgram::Ended Run(std::vector<std::string> line) {
    line.insert(line.begin(), "image");
    line.push_back("--images=" + images());
    const std::vector<cli::Command> commands = {ImageCommand()};
    const cli::Command root{.name = "berth", .summary = "Berth", .children = commands};
    const auto entry = [&root](const std::vector<std::string>& words,
                               cli::Environment& environment) {
      return static_cast<int>(cli::RunProgram(root, words, environment));
    };
    return program_.Run(entry, line);
  }
  cli::FakeProgram::Ended BuildDemo(const std::string& name) {
    const std::string& folder = program_.folder();
    return Run({"build",
                name,
                "--boot-folder=" + folder + "/boot",
                "--modules-folder=" + folder + "/modules",
                "--busybox=" + folder + "/busybox"});
  }
  std::string images() const { return program_.folder() + "/images"; }

  cli::FakeProgram program_;
  bool has_mke2fs_ = true;
};

TEST_F(ImageCommandTest, TheDemoImageIsBuiltListedAndRemoved) {
  const auto built = BuildDemo("demo");
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_NE(built.out.find("built   demo:latest (kernel,disk, "), std::string::npos) << built.out;
  const auto listed = Run({"ls"});
  EXPECT_NE(listed.out.find("demo:latest"), std::string::npos) << listed.out;
  const auto json = Run({"ls", "-o", "json"});
  EXPECT_NE(json.out.find("\"kernel\": true"), std::string::npos) << json.out;
  EXPECT_EQ(Run({"rm", "demo"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(images() + "/demo"));
  const auto again = Run({"rm", "demo"});
  EXPECT_EQ(again.code, 3) << again.err;
  EXPECT_NE(again.err.find("berth image ls"), std::string::npos) << again.err;
}

TEST_F(ImageCommandTest, WithoutAFolderItIsThatOfTheHostOfUp) {
  const auto list = [this](const std::string& variable, const std::string& folder) {
    program_.environment.variables[variable] = folder;
    const std::vector<cli::Command> commands = {ImageCommand()};
    const cli::Command root{.name = "berth", .summary = "Berth", .children = commands};
    const auto entry = [&root](const std::vector<std::string>& words,
                               cli::Environment& environment) {
      return static_cast<int>(cli::RunProgram(root, words, environment));
    };
    return program_.Run(entry, {"image", "ls"});
  };
  const std::string folder = program_.folder();
  EXPECT_NE(list("BERTH_DATA_DIR", folder).err.find("No images in " + folder + "-host/images"),
            std::string::npos);
  ASSERT_EQ(BuildDemo("demo").code, 0);  // in FOLDER/images
  EXPECT_NE(list("BERTH_HOST_DIR", folder).out.find("demo:latest"), std::string::npos);
}

TEST_F(ImageCommandTest, AnImageIsMadeOfTheFilesThatAreNamed) {
  const std::string disk = program_.Write("disk.raw", std::string(1024, 'd'));
  const auto built = Run({"build", "os/mine:1", "--disk", disk});
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_NE(built.out.find("os/mine:1 (disk, 1.0 KiB)"), std::string::npos) << built.out;
  EXPECT_EQ(Run({"build", "os/mine:1", "--disk", disk + ".none"}).code, 3);
  EXPECT_EQ(Run({"build", "os/mine:1", "--initramfs", disk}).code, 2);
  EXPECT_EQ(Run({"build", "registry.example/os:1", "--disk", disk}).code, 2);
}

TEST_F(ImageCommandTest, ABuildSaysHowFarItIsToWhomeverAsks) {
  const std::string disk = program_.Write("disk.raw", std::string(3 << 20, 'd'));
  const auto silent = Run({"build", "os/mine:1", "--disk", disk});
  EXPECT_EQ(silent.out.find("written"), std::string::npos) << silent.out;
  const auto told = Run({"build", "os/mine:1", "--disk", disk, "--progress"});
  EXPECT_NE(told.out.find("image         1048576/3145728 1.0 MiB of 3.0 MiB written\n"),
            std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("image         3145728/3145728 3.0 MiB of 3.0 MiB written\n"),
            std::string::npos)
      << told.out;
}

TEST_F(ImageCommandTest, AnImageIsMadeOfACdOrAUnifiedKernelImage) {
  const std::string part = program_.Write("part", std::string(1024, 'd'));
  EXPECT_NE(Run({"build", "os/cd:1", "--iso", part}).out.find("os/cd:1 (iso, "), std::string::npos);
  const auto unified = Run({"build", "os/uki:1", "--uki", part, "--squashfs", part});
  EXPECT_NE(unified.out.find("os/uki:1 (uki,squashfs, "), std::string::npos) << unified.err;
  EXPECT_NE(Run({"ls"}).out.find("uki,squashfs"), std::string::npos);
  const auto lone = Run({"build", "os/bad:1", "--squashfs", part});
  EXPECT_EQ(lone.code, 2);
  EXPECT_NE(lone.err.find("a squashfs needs a kernel"), std::string::npos) << lone.err;
  const auto unused = Run({"build", "os/bad:1", "--kernel", part, "--iso", part});
  EXPECT_EQ(unused.code, 2);
  EXPECT_NE(unused.err.find("kernel (unused: iso)"), std::string::npos) << unused.err;
}

TEST_F(ImageCommandTest, WhatFailsSaysWhatToInstallAndLeavesNothing) {
  has_mke2fs_ = false;
  const auto no_tool = BuildDemo("demo");
  EXPECT_EQ(no_tool.code, 3);
  EXPECT_NE(no_tool.err.find("e2fsprogs"), std::string::npos) << no_tool.err;
  std::filesystem::remove(program_.folder() + "/busybox");
  const auto no_busybox = BuildDemo("demo");
  EXPECT_NE(no_busybox.err.find("busybox-static"), std::string::npos) << no_busybox.err;
  EXPECT_EQ(Run({"ls", "-o", "json"}).out.find("demo"), std::string::npos);
}

TEST_F(ImageCommandTest, BuildingAgainReplacesAndKeepsNothingOld) {
  ASSERT_EQ(BuildDemo("demo").code, 0);
  Write("boot/vmlinuz-6.1-cloud", "another kernel");
  ASSERT_EQ(BuildDemo("demo").code, 0);
  size_t blobs = 0;
  for (const auto& file : std::filesystem::directory_iterator(images() + "/demo/blobs/sha256")) {
    blobs += file.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(blobs, 5U) << "manifest, config, kernel, memory disk, disk";
}

}  // namespace
}  // namespace berth::app
