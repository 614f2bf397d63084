// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 6.6 of images: what is fetched or unpacked has room before it is written, and
// takes none that volumes were promised.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "image/layout_writer.h"
#include "image/manifest.h"
#include "image/testing/packed.h"
#include "rt/event.h"
#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

// An image whose disk comes out of so little that only what comes out matters.
void MakePackedImage(const VolumeWorld& world, const std::string& name, int64_t bytes) {
  auto writer = image::LayoutWriter::Open(world.images() + "/" + name);
  CHECK(writer.ok()) << writer.status();
  image::Manifest manifest;
  manifest.root_disk =
      *writer->AddText(std::string(image::MediaTypeOf(image::Part::kRootDisk)) + "+gzip",
                       image::Gzipped(std::string(static_cast<size_t>(bytes), 'd')));
  CHECK(writer->AddManifest(manifest, "", "").ok());
}

iri::Volume FromImage(VolumeWorld& world, const std::string& uid, const std::string& image) {
  iri::Volume volume = world.Wanted(uid, 8 * kMiB);
  volume.spec.image = image;
  return volume;
}

TEST(VolumeRoom, P6_6_WhatIsUnpackedTakesNothingThatWasPromised) {
  VolumeWorld world(WorldDisks::kFake);
  MakePackedImage(world, "packed", 8 * kMiB);
  const iri::Volume thin = world.Available(world.Wanted("u-1", 54 * kMiB));
  const auto made = world.Create(FromImage(world, "u-2", "packed"));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Events().contains("no room for"); }));
  EXPECT_TRUE(
      world.Events().contains("NoRoom: image \"packed\": no room for its files of 8388608 bytes: "))
      << world.Events();
  EXPECT_TRUE(world.Events().contains(" are free (volumes 65011712, ")) << world.Events();
  EXPECT_LT(world.Used(), 63 * kMiB) << "nothing of it was written or is claimed";
  // The cause goes.
  ASSERT_EQ(world.Await(world.host().DeleteVolume(thin.metadata.id)), OkStatus());
  EXPECT_TRUE(world.BecomesState(made->metadata.id, iri::VolumeState::kAvailable))
      << world.Events();
  EXPECT_GE(world.Used(), 16 * kMiB) << "the volume, and what was unpacked";
  EXPECT_LT(world.Used(), 17 * kMiB) << "once";
}

// Of an image that is claimed, and comes when a test says so.
class ComingImages final : public ImageSource {
 public:
  Status Check(std::string_view) const override { return OkStatus(); }
  rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) override {
    ArrivingPieces pieces = {{"digest", 20 * kMiB}};
    CO_TRY_STATUS(co_await request.claim(std::move(pieces)));
    ++claims;
    CO_TRY_STATUS(co_await arrived_.Wait());
    co_return Unavailable("the registry is gone");
  }
  rt::Task<Result<int64_t>> TakenBytes() override { co_return int64_t{0}; }
  rt::Task<Status> End() {
    arrived_.Set();
    co_return OkStatus();
  }
  std::atomic<int> claims = 0;

 private:
  rt::Event arrived_;
};

TEST(VolumeRoom, P6_6_AnImageOnItsWayIsPromisedUntilItsFetchEnds) {
  ComingImages images;
  VolumeWorld world(WorldDisks::kFake);
  world.Kill();
  world.other_images = &images;
  // Tried once, and not again before the test is over.
  world.options.retry = {.initial = Duration::Minutes(10), .max = Duration::Minutes(10)};
  world.Start(nullptr);
  ASSERT_TRUE(world.Create(FromImage(world, "u-1", "registry.test/os:1")).ok());
  ASSERT_TRUE(world.Create(FromImage(world, "u-2", "registry.test/os:1")).ok());
  ASSERT_TRUE(iri::Eventually(world, [&] { return images.claims == 2; })) << world.Events();
  EXPECT_EQ(world.Used(), 36 * kMiB) << "two volumes, and one image that comes for both";
  const auto full = world.Create(world.Wanted("u-3", 29 * kMiB));
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(full.status().message().contains("images 20971520")) << full.status();
  ASSERT_EQ(world.Run(images.End()), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] { return world.Used() == 16 * kMiB; })) << world.Used();
  EXPECT_TRUE(world.Create(world.Wanted("u-3", 29 * kMiB)).ok());
}

TEST(VolumeRoom, P6_6_AVolumeThatIsDeletedClaimsNoImage) {
  ComingImages images;
  VolumeWorld world(WorldDisks::kFake);
  world.Kill();
  world.other_images = &images;
  world.Start(nullptr);
  const auto made = world.Create(FromImage(world, "u-1", "registry.test/os:1"));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(iri::Eventually(world, [&] { return images.claims == 1; })) << world.Events();
  ASSERT_EQ(world.Await(world.host().DeleteVolume(made->metadata.id)), OkStatus());
  ASSERT_TRUE(world.IsGone(made->metadata.id));
  EXPECT_EQ(world.Used(), 0);
}

}  // namespace
}  // namespace berth::runtime
