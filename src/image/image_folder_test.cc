// SPDX-License-Identifier: Apache-2.0
// Images in a folder: what is found is what its digests say, or an error that names it; what is
// written is found again; what is removed leaves nothing, and nothing is removed that is in use.
#include "image/image_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <csignal>

#include "image/file_writer.h"
#include "image/layout_writer.h"
#include "image/testing/temporary_folder.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1'000'000);  // long before any file here
constexpr const char* kTag = ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"12\"}";

class ImageFolderTest : public testing::Test {
 protected:
  // Puts a blob into a layout and gives its descriptor, by hand: not as our writer would.
  std::string Blob(const std::string& layout,
                   std::string_view type,
                   const std::string& content,
                   const std::string& more = "") {
    const std::string digest = pki::Sha256Hex(content);
    folder_.Write(layout + "/blobs/sha256/" + digest, content);
    return "{\"mediaType\":\"" + std::string(type) + "\",\"digest\":\"sha256:" + digest +
           "\",\"size\":" + std::to_string(content.size()) + more + "}";
  }
  std::string Manifest(const std::string& layout, const std::string& disk) {
    return "{\"schemaVersion\":2,\"layers\":[" + Blob(layout, MediaTypeOf(Part::kRootDisk), disk) +
           "]}";
  }
  void Index(const std::string& layout, const std::string& descriptors) {
    folder_.Write(layout + "/index.json",
                  "{\"schemaVersion\":2,\"manifests\":[" + descriptors + "]}");
  }
  Result<ImageFiles> Find(const std::string& reference, std::string_view architecture = "amd64") {
    return images_.Find(*ParseReference(reference), architecture);
  }
  Result<std::string> Disk(const std::string& reference, std::string_view architecture = "amd64") {
    TRY(const ImageFiles files, Find(reference, architecture));
    return ReadWhole(files.disk->path);
  }
  // Our own way.
  void Build(const std::string& name, std::string_view tag, std::string_view kernel) {
    auto writer = LayoutWriter::Open(folder_.Sub(name));
    ASSERT_TRUE(writer.ok()) << writer.status();
    image::Manifest manifest;
    manifest.config = *writer->AddText(kConfigType, ConfigText("console=ttyS0 quiet"));
    manifest.kernel = *writer->AddText(MediaTypeOf(Part::kKernel), kernel);
    manifest.initramfs = *writer->AddText(MediaTypeOf(Part::kInitramfs), "shared memory disk");
    const auto added = writer->AddManifest(manifest, tag, kHostArchitecture);
    ASSERT_TRUE(added.ok()) << added.status();
  }
  size_t BlobCount(const std::string& name) {
    const std::filesystem::directory_iterator blobs(folder_.Sub(name + "/blobs/sha256"));
    return static_cast<size_t>(std::distance(begin(blobs), end(blobs)));
  }

  TemporaryFolder folder_;
  ImageFolder images_{folder_.path()};
};

TEST_F(ImageFolderTest, ALayoutGivesItsRootDisk) {
  Index("os/debian", Blob("os/debian", kManifestType, Manifest("os/debian", "the disk"), kTag));
  EXPECT_EQ(*Disk("os/debian:12"), "the disk");
  EXPECT_EQ(*Disk("os/debian"), "the disk");
  EXPECT_EQ(Disk("os/debian:13").status().reason(), Reason::kNotFound);
  EXPECT_EQ(Disk("os/fedora").status().reason(), Reason::kNotFound);
  EXPECT_GT(*images_.TakenBytes(), 0);
}

TEST_F(ImageFolderTest, AnIndexIsChosenFromByArchitecture) {
  const auto platform = [](std::string_view name) {
    return ",\"platform\":{\"architecture\":\"" + std::string(name) + "\"}";
  };
  const std::string nested =
      "{\"manifests\":[" + Blob("x", kManifestType, Manifest("x", "for amd"), platform("amd64")) +
      "," + Blob("x", kManifestType, Manifest("x", "for arm"), platform("arm64")) + "]}";
  Index("x", Blob("x", kIndexType, nested, kTag));
  EXPECT_EQ(*Disk("x:12", "amd64"), "for amd");
  EXPECT_EQ(*Disk("x:12", "arm64"), "for arm");
  EXPECT_EQ(Disk("x:12", "riscv64").status().reason(), Reason::kNotFound);
}

TEST_F(ImageFolderTest, AnIndexThatLeadsToItselfEnds) {
  std::string text = "{\"manifests\":[]}";
  for (int i = 0; i < 6; ++i) {
    text = "{\"manifests\":[" +
           Blob("x", kIndexType, text, ",\"platform\":{\"architecture\":\"amd64\"}") + "]}";
  }
  Index("x", Blob("x", kIndexType, text));
  EXPECT_EQ(Disk("x").status().reason(), Reason::kBadRequest);
}

TEST_F(ImageFolderTest, WrongDigestsAndTruncatedBlobsAreRefused) {
  const std::string manifest = Manifest("x", "the disk");
  Index("x", Blob("x", kManifestType, manifest));
  const std::string disk = "x/blobs/sha256/" + pki::Sha256Hex("the disk");
  folder_.Write(disk, "the d1sk");
  EXPECT_EQ(Disk("x").status().reason(), Reason::kBadRequest);
  EXPECT_NE(Disk("x").status().message().find("expected sha256:"), std::string_view::npos);
  folder_.Write(disk, "the ");
  EXPECT_NE(Disk("x").status().message().find("has 4 bytes, its manifest says 8"),
            std::string_view::npos);
  folder_.Write(disk, "the disk");
  EXPECT_TRUE(Disk("x").ok()) << "the cause is gone";
  folder_.Write("x/blobs/sha256/" + pki::Sha256Hex(manifest), manifest + " ");
  EXPECT_EQ(Disk("x").status().reason(), Reason::kBadRequest);
  folder_.Write("x/index.json", "{");
  EXPECT_FALSE(Disk("x").ok());
}

TEST_F(ImageFolderTest, DiskFilesAreNamedWithTheirFormat) {
  folder_.Write("plain.raw", "raw disk");
  folder_.Write("grown.qcow2", "qcow2 disk");
  EXPECT_EQ(*Disk("plain.raw"), "raw disk");
  EXPECT_EQ(Find("plain.raw")->disk->format, RootDisk::Format::kRaw);
  EXPECT_EQ(Find("grown.qcow2")->disk->format, RootDisk::Format::kQcow2);
  EXPECT_EQ(*Disk("plain.raw@sha256:" + pki::Sha256Hex("raw disk")), "raw disk");
  EXPECT_EQ(Disk("plain.raw@sha256:" + pki::Sha256Hex("other")).status().reason(),
            Reason::kBadRequest);
  EXPECT_EQ(Disk("none.raw").status().reason(), Reason::kNotFound);
}

TEST_F(ImageFolderTest, P9_LinksAndFoldersAreNoDisks) {
  std::filesystem::create_symlink("/etc/passwd", folder_.Sub("link.raw"));
  std::filesystem::create_directories(folder_.Sub("folder.raw"));
  EXPECT_FALSE(Disk("link.raw").ok());
  EXPECT_FALSE(Disk("folder.raw").ok());
}

TEST_F(ImageFolderTest, AFolderWithAKernelIsAnImage) {
  folder_.Write("plain/vmlinuz", "kernel");
  EXPECT_EQ(Find("plain")->kernel->command_line, "console=ttyS0");
  EXPECT_EQ(Find("plain")->kernel->initramfs, "");
  folder_.Write("plain/initramfs", "memory disk");
  folder_.Write("plain/cmdline", "console=ttyS0 a&b\n");
  EXPECT_EQ(Find("plain")->kernel->command_line, "console=ttyS0 a&b");
  EXPECT_EQ(ReadWhole(Find("plain")->kernel->initramfs), "memory disk");
}

TEST_F(ImageFolderTest, WhatIsBuiltIsFoundListedAndRemoved) {
  Build("demo", "latest", "kernel one");
  Build("demo", "two", "kernel two");
  const auto files = Find("demo:latest");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ReadWhole(files->kernel->kernel), "kernel one");
  EXPECT_EQ(ReadWhole(files->kernel->initramfs), "shared memory disk");
  EXPECT_EQ(files->kernel->command_line, "console=ttyS0 quiet");
  EXPECT_FALSE(files->disk.has_value());
  struct stat status = {};
  ASSERT_EQ(stat(files->kernel->kernel.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U) << "a hypervisor of another user reads it";

  auto listed = images_.List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ(listed->at(0).reference, "demo:latest");
  EXPECT_EQ(listed->at(1).reference, "demo:two");
  EXPECT_TRUE(listed->at(0).has_kernel && !listed->at(0).has_disk && listed->at(0).error.empty());
  EXPECT_EQ(BlobCount("demo"), 6U) << "what two images share is there once";
}

TEST_F(ImageFolderTest, RemovingTakesWhatNobodyElseUses) {
  Build("demo", "latest", "kernel one");
  Build("demo", "two", "kernel two");
  EXPECT_EQ(images_.Remove(*ParseReference("demo:none"), kNow).reason(), Reason::kNotFound);
  EXPECT_TRUE(images_.Remove(*ParseReference("demo:two"), kNow).ok());
  EXPECT_EQ(BlobCount("demo"), 4U);
  EXPECT_TRUE(Find("demo:latest").ok());
  EXPECT_TRUE(images_.Remove(*ParseReference("demo"), kNow).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.Sub("demo")));
  folder_.Write("plain.raw", "raw disk");
  EXPECT_TRUE(images_.Remove(*ParseReference("plain.raw"), kNow).ok());
  EXPECT_EQ(images_.Remove(*ParseReference("plain.raw"), kNow).reason(), Reason::kNotFound);
  EXPECT_TRUE(images_.List()->empty());
}

TEST_F(ImageFolderTest, NothingIsRemovedWhileItIsUsed) {
  Build("demo", "latest", "kernel one");
  {
    const auto files = Find("demo");
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(images_.Remove(*ParseReference("demo"), kNow).reason(), Reason::kConflict);
    EXPECT_EQ(ReadWhole(files->kernel->kernel), "kernel one");
  }
  EXPECT_EQ(*Sweep(Layout(folder_.Sub("demo")), kNow) > 0, true);
  EXPECT_EQ(BlobCount("demo"), 0U);
}

TEST_F(ImageFolderTest, ASweepTakesOldPartsAndLeavesYoungOnes) {
  Build("demo", "latest", "kernel one");
  folder_.Write("demo/parts/half", "half of something");
  const Layout layout(folder_.Sub("demo"));
  EXPECT_EQ(*Sweep(layout, kNow), 0);
  constexpr WallTime kFarFuture = WallTime::FromSeconds(100'000'000'000);
  EXPECT_EQ(*Sweep(layout, kFarFuture), 17);
  EXPECT_TRUE(Find("demo").ok());
}

TEST_F(ImageFolderTest, OfWhatCannotBeWrittenNothingStays) {
  folder_.Write("disk", std::string(100'000, 'x'));
  auto writer = LayoutWriter::Open(folder_.Sub("os/debian"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto text = writer->AddText(kConfigType, std::string(2000, 'x'));
  const auto disk = writer->AddFile(MediaTypeOf(Part::kRootDisk), folder_.Sub("disk"), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(text.ok());
  EXPECT_FALSE(disk.ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.Sub("os/debian/parts")));
}

TEST_F(ImageFolderTest, BrokenImagesAreListedWithTheReason) {
  Build("demo", "latest", "kernel one");
  folder_.Write("demo/blobs/sha256/" + pki::Sha256Hex("kernel one"), "kern");
  folder_.Write("odd/index.json", "{");
  const auto listed = images_.List();
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_NE(listed->at(0).error.find("4 of 10 bytes"), std::string::npos) << listed->at(0).error;
  EXPECT_NE(listed->at(1).error, "");
}

TEST_F(ImageFolderTest, ACommandLineIsPlainText) {
  auto writer = LayoutWriter::Open(folder_.Sub("x"));
  image::Manifest manifest;
  manifest.kernel = *writer->AddText(MediaTypeOf(Part::kKernel), "kernel");
  manifest.command_line = *writer->AddText(MediaTypeOf(Part::kCommandLine), "a\x1b[2J");
  ASSERT_TRUE(writer->AddManifest(manifest, "", "").ok());
  EXPECT_EQ(Find("x").status().reason(), Reason::kBadRequest);
}

TEST(FileWriter, ZerosAreHolesAndADigestCanBeResumed) {
  const TemporaryFolder folder;
  const std::string path = folder.Sub("disk");
  const std::string content = "begin" + std::string(1 << 20, '\0') + "end";
  {
    auto first = FileWriter::Open(path, FileWriter::Begin::kEmpty);
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE((*first)->Append(content.substr(0, 300'000)).ok());
  }
  auto second = FileWriter::Open(path, FileWriter::Begin::kResume);
  ASSERT_TRUE(second.ok()) << second.status();
  const auto there = static_cast<size_t>((*second)->bytes());
  EXPECT_LE(there, 300'000U) << "zeros at the end may not have been there yet";
  ASSERT_TRUE((*second)->Append(content.substr(there)).ok());
  EXPECT_EQ(*(*second)->Finish(), pki::Sha256Hex(content));
  EXPECT_EQ(ReadWhole(path), content);
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 19);
}

}  // namespace
}  // namespace berth::image
