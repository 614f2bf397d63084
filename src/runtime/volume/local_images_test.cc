// SPDX-License-Identifier: Apache-2.0
// What runtimes see of a folder of images; what is in it is tested with image/image_folder.h.
#include "runtime/volume/local_images.h"

#include <gtest/gtest.h>

#include "image/layout_writer.h"
#include "image/testing/packed.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"
#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

class LocalImagesTest : public testing::Test {
 protected:
  Result<image::ImageFiles> Fetch(LocalImages& images, const std::string& reference) {
    ImageRequest request;
    request.reference = reference;
    request.claim = [this](ArrivingPieces pieces) { return Claim(std::move(pieces)); };
    return rt::RunTask(loop_, images.Fetch(std::move(request)));
  }
  rt::Task<Status> Claim(ArrivingPieces pieces) {
    for (const auto& [name, bytes] : pieces) claimed_ += bytes;
    co_return answer_;
  }
  TemporaryFolder folder_;
  Status answer_;
  int64_t claimed_ = 0;
  rt::SimLoop loop_{1};
  rt::SimBlockingPool pool_;
};

TEST_F(LocalImagesTest, AnImageIsItsFilesOrAnErrorThatNamesIt) {
  LocalImages images(folder_.path(), pool_);
  folder_.Write("plain.raw", "raw disk");
  const auto files = Fetch(images, "plain.raw");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(DiskFileOf(*files->disk).format, DiskFormat::kRaw);
  EXPECT_EQ(ReadWhole(files->disk->path), "raw disk");
  const Status missing = Fetch(images, "none").status();
  EXPECT_EQ(missing.reason(), Reason::kNotFound);
  EXPECT_TRUE(missing.message().starts_with("image \"none\": ")) << missing;
  EXPECT_GT(*rt::RunTask(loop_, images.TakenBytes()), 0);
}

TEST_F(LocalImagesTest, P6_6_WhatIsUnpackedIsAskedForBefore) {
  LocalImages images(folder_.path(), pool_);
  auto writer = image::LayoutWriter::Open(folder_.Sub("os"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  image::Manifest manifest;
  manifest.root_disk =
      *writer->AddText(std::string(image::MediaTypeOf(image::Part::kRootDisk)) + "+gzip",
                       image::Gzipped(std::string(kMiB, 'd')));
  ASSERT_TRUE(writer->AddManifest(manifest, "", "").ok());
  answer_ = Status(Reason::kTooManyRequests, "no room");
  const Status refused = Fetch(images, "os").status();
  EXPECT_EQ(refused.reason(), Reason::kTooManyRequests);
  EXPECT_EQ(refused.message(), "image \"os\": no room");
  EXPECT_EQ(claimed_, kMiB);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.Sub("os/unpacked")));
  answer_ = OkStatus();
  ASSERT_TRUE(Fetch(images, "os").ok());
  EXPECT_EQ(claimed_, 2 * kMiB);
  ASSERT_TRUE(Fetch(images, "os").ok());
  EXPECT_EQ(claimed_, 2 * kMiB) << "it is there";
  folder_.Write("plain.raw", "raw disk");
  ASSERT_TRUE(Fetch(images, "plain.raw").ok());
  EXPECT_EQ(claimed_, 2 * kMiB);
}

TEST_F(LocalImagesTest, WhatCanNeverBeAnImageHereIsRefusedAtOnce) {
  const LocalImages images(folder_.path(), pool_);
  EXPECT_EQ(images.Check("../x").reason(), Reason::kBadRequest);
  EXPECT_EQ(images.Check("registry.example/x").reason(), Reason::kBadRequest);
  EXPECT_TRUE(images.Check("os/debian:12").ok());
}

TEST_F(LocalImagesTest, WithoutAFolderThereAreNone) {
  LocalImages none("", pool_);
  EXPECT_EQ(Fetch(none, "x").status().reason(), Reason::kNotFound);
  EXPECT_EQ(*rt::RunTask(loop_, none.TakenBytes()), 0);
}

}  // namespace
}  // namespace berth::runtime
