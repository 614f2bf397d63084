// SPDX-License-Identifier: Apache-2.0
// Packed layers: what comes out is what went in, or an error that names the file and what is wrong
// with it, and then nothing is left of the attempt.
#include "image/unpack.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/random.h"
#include "image/image_folder.h"
#include "image/layout_writer.h"
#include "image/testing/packed.h"
#include "image/testing/temporary_folder.h"
#include "image/unpack_needs.h"
#include "image/unpacked_parts.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

constexpr WallTime kNow = WallTime::FromSeconds(1'000'000);
constexpr int64_t kPlenty = 1 << 30;

struct Case {
  Packing packing;
  std::string suffix;
  std::string (*pack)(std::string_view content);
};

class UnpackTest : public testing::TestWithParam<Case> {
 protected:
  // What comes out of a file with this content.
  Result<std::string> Unpack(const std::string& packed, int64_t bytes_max = kPlenty) {
    folder_.Write("packed", packed);
    const auto writer = FileWriter::Open(folder_.Sub("out"), FileWriter::Begin::kEmpty);
    EXPECT_TRUE(writer.ok()) << writer.status();
    TRY_STATUS(UnpackFile(folder_.Sub("packed"), GetParam().packing, bytes_max, **writer));
    TRY_STATUS((*writer)->Finish());
    return ReadWhole(folder_.Sub("out"));
  }
  std::string Pack(std::string_view content) { return GetParam().pack(content); }
  std::string Why(const std::string& packed, int64_t bytes_max = kPlenty) {
    const Result<std::string> out = Unpack(packed, bytes_max);
    EXPECT_EQ(out.status().reason(), Reason::kBadRequest);
    EXPECT_TRUE(out.status().message().starts_with(folder_.Sub("packed") + ": ")) << out.status();
    return std::string(out.status().message());
  }

  // An image whose disk is this packed content.
  void Build(const std::string& packed) {
    auto writer = LayoutWriter::Open(folder_.Sub("images/os"));
    ASSERT_TRUE(writer.ok()) << writer.status();
    Manifest manifest;
    manifest.root_disk =
        *writer->AddText(std::string(MediaTypeOf(Part::kRootDisk)) + GetParam().suffix, packed);
    ASSERT_TRUE(writer->AddManifest(manifest, "1", kHostArchitecture).ok());
  }
  Result<ImageFiles> Find(int64_t disk_bytes_max = kPlenty) {
    return images_.Find(*ParseReference("os:1"), kHostArchitecture, disk_bytes_max);
  }
  // So much that does not pack well.
  static std::string Noise(size_t bytes) {
    Random random(5);
    std::string noise(bytes, ' ');
    for (char& c : noise) c = static_cast<char>(random.Next());
    return noise;
  }
  size_t Count(const std::string& name) const {
    const std::filesystem::directory_iterator files(folder_.Sub("images/os/" + name));
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  TemporaryFolder folder_;
  ImageFolder images_{folder_.Sub("images")};
};

INSTANTIATE_TEST_SUITE_P(Packings,
                         UnpackTest,
                         testing::Values(Case{Packing::kGzip, "+gzip", Gzipped},
                                         Case{Packing::kZstd, "+zstd", Zstandard}),
                         [](const auto& info) { return info.param.suffix.substr(1); });

TEST_P(UnpackTest, TellsHowFarItIs) {
  const std::string packed = Pack(Noise(3 << 20));
  Build(packed);
  std::vector<int64_t> told;
  const auto found = images_.Find(
      *ParseReference("os:1"), kHostArchitecture, kPlenty, [&](int64_t bytes, int64_t of) {
        EXPECT_EQ(of, static_cast<int64_t>(packed.size()));
        told.push_back(bytes);
      });
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_GE(told.size(), 2U);
  EXPECT_LE(told.size(), 101U) << "each percent once";
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_LE(told.back(), static_cast<int64_t>(packed.size()));
  EXPECT_GT(told.back(), static_cast<int64_t>(packed.size()) / 2);
}

TEST_P(UnpackTest, WhatWentInComesOut) {
  const std::string long_one = "begin" + std::string(3 << 20, 'x') + "end";
  for (const std::string& content : {std::string(), std::string("short"), long_one}) {
    const auto out = Unpack(Pack(content));
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*out, content);
  }
  // Several in a row are one.
  EXPECT_EQ(*Unpack(Pack("one ") + Pack("") + Pack("two")), "one two");
  // A content that ends where a buffer does.
  const std::string even(size_t{256} << 10, 'y');
  EXPECT_EQ(*Unpack(Pack(even) + Pack(even)), even + even);
}

TEST_P(UnpackTest, P9_AStreamThatIsCutShortAnywhereIsRefused) {
  Random random(7);
  std::string content(300, '\0');
  for (char& c : content) c = static_cast<char>(random.Below(256));
  const std::string packed = Pack(content);
  for (size_t bytes = 0; bytes < packed.size(); ++bytes) {
    EXPECT_NE(Why(packed.substr(0, bytes)).find("cut short"), std::string::npos) << bytes;
  }
}

TEST_P(UnpackTest, P9_WhatFollowsTheStreamIsRefused) {
  EXPECT_NE(Why(Pack("content") + "garbage").find("something else follows"), std::string::npos);
  EXPECT_NE(Why(Pack("content") + std::string(100, '\0')).find("follows"), std::string::npos);
}

TEST_P(UnpackTest, P9_NonsenseIsRefusedWhateverItIs) {
  EXPECT_NE(Why("this was never packed at all").find("stream"), std::string::npos);
  const std::string content = "some content that is worth a checksum";
  const std::string packed = Pack(content);
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    std::string broken = packed;
    broken[random.Below(broken.size())] ^= static_cast<char>(1 + random.Below(255));
    const Result<std::string> out = Unpack(broken, 1 << 20);
    // A field that says nothing about the content may have been hit.
    if (out.ok() && GetParam().packing == Packing::kGzip) EXPECT_EQ(*out, content);
  }
}

TEST_P(UnpackTest, P9_ABombIsRefusedWithTheLimitAndLeavesNothing) {
  const std::string bomb = Pack(std::string(8 << 20, '\0'));
  EXPECT_LT(bomb.size(), 10'000U);
  EXPECT_NE(Why(bomb, 1'000'000).find("more than 1000000 bytes come out of it"), std::string::npos);
  EXPECT_TRUE(Unpack(bomb, 8 << 20).ok()) << "exactly the limit";
  Build(bomb);
  EXPECT_EQ(Find(1'000'000).status().reason(), Reason::kBadRequest);
  EXPECT_EQ(Count("unpacked") + Count("parts"), 0U);
  const auto whole = Find(8 << 20);
  ASSERT_TRUE(whole.ok()) << whole.status();
  struct stat status = {};
  ASSERT_EQ(stat(whole->disk->path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20) << "zeros take no room";
  const Status too_large = Find(1'000'000).status();
  EXPECT_NE(too_large.message().find("8388608 bytes come out of it, the limit here is 1000000"),
            std::string_view::npos)
      << "also when it is there already: " << too_large;
}

TEST_P(UnpackTest, ADiskIsUnpackedOnceVerifiedEachTimeAndGoesWithItsImage) {
  Build(Pack("the disk"));
  std::string path;
  {
    const auto files = Find();
    ASSERT_TRUE(files.ok()) << files.status();
    path = files->disk->path;
    EXPECT_EQ(ReadWhole(path), "the disk");
    EXPECT_EQ(path, Find()->disk->path);
    struct stat status = {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0644U) << "a hypervisor of another user reads it";
  }
  EXPECT_EQ(Count("unpacked"), 1U);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  folder_.Write("images/os/unpacked/" + std::filesystem::path(path).filename().string(), "forged");
  EXPECT_EQ(ReadWhole(Find()->disk->path), "the disk") << "what is not that any more is remade";
  EXPECT_EQ(Count("unpacked"), 1U);
  Build(Pack("another disk"));
  EXPECT_TRUE(Find().ok());
  ASSERT_TRUE(Sweep(Layout(folder_.Sub("images/os")), kNow).ok());
  EXPECT_EQ(Count("unpacked"), 1U) << "that of the image which is gone is gone";
  EXPECT_EQ(ReadWhole(Find()->disk->path), "another disk");
  ASSERT_TRUE(images_.Remove(*ParseReference("os"), kNow).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.Sub("images/os")));
}

TEST_P(UnpackTest, WhatComesOutIsKnownBeforeItIsWritten) {
  const std::string content(3 << 20, 'x');
  folder_.Write("packed", Pack(content) + Pack("and more"));
  const std::string path = folder_.Sub("packed");
  EXPECT_EQ(*UnpackedWritten(path, GetParam().packing, kPlenty), (3 << 20) + 8);
  const Status bomb = UnpackedWritten(path, GetParam().packing, 1'000'000).status();
  EXPECT_NE(bomb.message().find("more than 1000000 bytes come out of it"), std::string_view::npos)
      << bomb;
  std::string cut = Pack(content);
  cut.pop_back();
  folder_.Write("packed", cut);
  EXPECT_EQ(UnpackedWritten(path, GetParam().packing, kPlenty).status().reason(),
            Reason::kBadRequest);

  Build(Pack(content));
  const Layout layout(folder_.Sub("images/os"));
  const auto needs = [&layout](int64_t disk_bytes_max) {
    const auto image = layout.Find(*ParseReference("os:1"), kHostArchitecture);
    CHECK(image.ok()) << image.status();
    return UnpackNeeds(layout, image->manifest, disk_bytes_max);
  };
  ASSERT_EQ(needs(kPlenty)->size(), 1U);
  EXPECT_EQ(needs(kPlenty)->begin()->second, 3 << 20);
  EXPECT_NE(needs(kPlenty)->begin()->first, needs(kPlenty)->begin()->first)
      << "two that unpack it at once write it twice";
  EXPECT_EQ(needs(1'000'000).status().reason(), Reason::kBadRequest);
  EXPECT_EQ(Count("unpacked") + Count("parts"), 0U);
  ASSERT_TRUE(Find().ok());
  EXPECT_TRUE(needs(kPlenty)->empty()) << "it is there";
}

TEST_P(UnpackTest, ADiskNeedsNoRoomForItsZeros) {
  constexpr int64_t kBlockBytes = 512;  // of st_blocks
  const std::string noise = Noise(300'000);
  // Several streams, so that zeros come in pieces.
  const std::string zeros = Pack(std::string((16 << 20) + 1000, '\0'));
  folder_.Write("packed", Pack(noise) + zeros + zeros + zeros + zeros + Pack(noise));
  const std::string path = folder_.Sub("packed");
  const Result<int64_t> needed = UnpackedWritten(path, GetParam().packing, kPlenty);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_GE(*needed, 600'000);
  EXPECT_LT(*needed, 600'000 + (4 << 16));
  const auto writer = FileWriter::Open(folder_.Sub("out"), FileWriter::Begin::kEmpty);
  ASSERT_TRUE(UnpackFile(path, GetParam().packing, kPlenty, **writer).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  struct stat status = {};
  ASSERT_EQ(stat(folder_.Sub("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, (64 << 20) + 604'000);
  EXPECT_LE(status.st_blocks * kBlockBytes, *needed + (64 << 10)) << "never more than was claimed";
}

TEST(FileWriter, LeavesNothingOfACopyThatFails) {
  TemporaryFolder folder;
  folder.Write("from", "content");
  folder.Write("to/inside", "in the way");
  EXPECT_FALSE(CopyFile(folder.Sub("from"), folder.Sub("to")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.Sub("to.new")));
  EXPECT_TRUE(CopyFile(folder.Sub("from"), folder.Sub("there")).ok());
  EXPECT_EQ(ReadWhole(folder.Sub("there")), "content");
}

TEST_P(UnpackTest, ALayoutOfSomebodyElseIsUnpackedToo) {
  Build(Pack("the disk"));
  std::filesystem::remove_all(folder_.Sub("images/os/unpacked"));
  std::filesystem::remove_all(folder_.Sub("images/os/parts"));
  const auto files = Find();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ReadWhole(files->disk->path), "the disk");
}

}  // namespace
}  // namespace berth::image
