// SPDX-License-Identifier: Apache-2.0
// Images in a folder: what is found is what its digests say, or an error that names it.
#include "runtime/volume/local_images.h"

#include <gtest/gtest.h>

#include "pki/digest.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"
#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kRootfs = "application/vnd.ironcore.image.rootfs";

class LocalImagesTest : public testing::Test {
 protected:
  // Puts a blob into a layout and gives its descriptor.
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
    return "{\"schemaVersion\":2,\"layers\":[" + Blob(layout, kRootfs, disk) + "]}";
  }
  void Index(const std::string& layout, const std::string& descriptors) {
    folder_.Write(layout + "/index.json",
                  "{\"schemaVersion\":2,\"manifests\":[" + descriptors + "]}");
  }
  Result<std::string> Fetch(const std::string& reference, const std::string& architecture = "") {
    ImageRequest request;
    request.reference = reference;
    request.architecture = architecture;
    auto disk = rt::RunTask(loop_, images_.Fetch(std::move(request)));
    if (!disk.ok()) return disk.status();
    EXPECT_EQ((*disk)->file().format, DiskFormat::kRaw);
    return ReadWhole((*disk)->file().path);
  }

  TemporaryFolder folder_;
  rt::SimLoop loop_{1};
  rt::SimBlockingPool pool_;
  LocalImages images_{folder_.path(), pool_};
};

constexpr const char* kTag = ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"12\"}";

TEST_F(LocalImagesTest, ALayoutGivesItsRootDisk) {
  Index("os/debian", Blob("os/debian", kManifestType, Manifest("os/debian", "the disk"), kTag));
  EXPECT_EQ(*Fetch("os/debian:12"), "the disk");
  EXPECT_EQ(*Fetch("os/debian"), "the disk");
  EXPECT_EQ(Fetch("os/debian:13").status().reason(), Reason::kNotFound);
  EXPECT_EQ(Fetch("os/fedora").status().reason(), Reason::kNotFound);
  EXPECT_GT(*rt::RunTask(loop_, images_.TakenBytes()), 0);
}

TEST_F(LocalImagesTest, AnIndexIsChosenFromByArchitecture) {
  const std::string nested = "{\"manifests\":[" +
                             Blob("x",
                                  kManifestType,
                                  Manifest("x", "for amd"),
                                  ",\"platform\":{\"architecture\":\"amd64\"}") +
                             "," +
                             Blob("x",
                                  kManifestType,
                                  Manifest("x", "for arm"),
                                  ",\"platform\":{\"architecture\":\"arm64\"}") +
                             "]}";
  Index("x", Blob("x", kIndexType, nested, kTag));
  EXPECT_EQ(*Fetch("x:12", "amd64"), "for amd");
  EXPECT_EQ(*Fetch("x:12", "arm64"), "for arm");
  EXPECT_EQ(Fetch("x:12", "riscv64").status().reason(), Reason::kNotFound);
}

TEST_F(LocalImagesTest, WrongDigestsAndTruncatedBlobsAreRefused) {
  const std::string manifest = Manifest("x", "the disk");
  Index("x", Blob("x", kManifestType, manifest));
  const std::string disk = "x/blobs/sha256/" + pki::Sha256Hex("the disk");
  folder_.Write(disk, "the d1sk");
  EXPECT_EQ(Fetch("x").status().reason(), Reason::kBadRequest);
  EXPECT_NE(Fetch("x").status().message().find("expected sha256:"), std::string_view::npos);
  folder_.Write(disk, "the ");
  EXPECT_NE(Fetch("x").status().message().find("has 4 bytes, its manifest says 8"),
            std::string_view::npos);
  folder_.Write(disk, "the disk");
  EXPECT_TRUE(Fetch("x").ok());
  folder_.Write("x/blobs/sha256/" + pki::Sha256Hex(manifest), manifest + " ");
  EXPECT_EQ(Fetch("x").status().reason(), Reason::kBadRequest);
  folder_.Write("x/index.json", "{");
  EXPECT_FALSE(Fetch("x").ok());
}

TEST_F(LocalImagesTest, DiskFilesAreNamedWithTheirFormat) {
  folder_.Write("plain.raw", "raw disk");
  EXPECT_EQ(*Fetch("plain.raw"), "raw disk");
  EXPECT_EQ(*Fetch("plain.raw@sha256:" + pki::Sha256Hex("raw disk")), "raw disk");
  EXPECT_EQ(Fetch("plain.raw@sha256:" + pki::Sha256Hex("other")).status().reason(),
            Reason::kBadRequest);
  EXPECT_EQ(Fetch("none.raw").status().reason(), Reason::kNotFound);
}

TEST_F(LocalImagesTest, P9_LinksAndFoldersAreNoDisks) {
  std::filesystem::create_symlink("/etc/passwd", folder_.Sub("link.raw"));
  std::filesystem::create_directories(folder_.Sub("folder.raw"));
  EXPECT_FALSE(Fetch("link.raw").ok());
  EXPECT_FALSE(Fetch("folder.raw").ok());
  EXPECT_EQ(images_.Check("../x").reason(), Reason::kBadRequest);
}

TEST_F(LocalImagesTest, WithoutAFolderThereAreNone) {
  LocalImages none("", pool_);
  ImageRequest request;
  request.reference = "x";
  EXPECT_EQ(rt::RunTask(loop_, none.Fetch(request)).status().reason(), Reason::kNotFound);
  EXPECT_EQ(*rt::RunTask(loop_, none.TakenBytes()), 0);
}

}  // namespace
}  // namespace berth::runtime
