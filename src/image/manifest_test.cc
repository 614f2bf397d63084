// SPDX-License-Identifier: Apache-2.0
// Documents from anywhere become a manifest, or an error that says what is wrong.
#include "image/manifest.h"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

constexpr std::string_view kPrefix = "application/vnd.ironcore.image.";

std::string Text(std::string_view type, char digit, std::string_view more = "") {
  return "{\"mediaType\":\"" + std::string(type) +
         "\",\"digest\":\"sha256:" + std::string(64, digit) + "\",\"size\":7" + std::string(more) +
         "}";
}
std::string Layer(std::string_view kind, char digit) {
  return Text(std::string(kPrefix) + std::string(kind), digit);
}
std::string Layers(const std::string& layers) { return "{\"layers\":[" + layers + "]}"; }

TEST(ImageManifest, FindsItsPartsUnderTheirNewAndOldNames) {
  const auto manifest = ParseManifest(Layers(Layer("kernel", '1') + "," + Layer("rootfs", '2') +
                                             "," + Layer("squashfs", '3') + "," +
                                             Text("application/vnd.in-toto+json", '4')));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->kernel->digest, std::string(64, '1'));
  EXPECT_EQ(manifest->root_disk->digest, std::string(64, '2'));
  EXPECT_EQ(manifest->root_disk->size, 7);
  EXPECT_FALSE(manifest->initramfs.has_value());
  EXPECT_EQ(manifest->squashfs->digest, std::string(64, '3'));
  EXPECT_EQ(manifest->PartsText(), "kernel,disk,squashfs");
  EXPECT_EQ(manifest->parts().size(), 3U) << "what is not for machines is passed over";
  for (const std::string_view kind : {"rootfs.v1alpha1.rootfs", "disk.img"}) {
    EXPECT_TRUE(ParseManifest(Layers(Layer(kind, '2')))->root_disk.has_value()) << kind;
  }
  const auto old = ParseManifest(Layers(Layer("vmlinuz.v1alpha1.vmlinuz", '1') + "," +
                                        Layer("initramfs.v1alpha1.initramfs", '2')));
  EXPECT_TRUE(old->kernel.has_value() && old->initramfs.has_value());
}

TEST(ImageManifest, ACdOrAUnifiedKernelImageIsEnough) {
  EXPECT_EQ(ParseManifest(Layers(Layer("iso", '1')))->iso->digest, std::string(64, '1'));
  EXPECT_EQ(ParseManifest(Layers(Layer("uki+gzip", '1')))->uki->packing(), Packing::kGzip);
  const auto both = ParseManifest(Layers(Layer("uki", '1') + "," + Layer("squashfs", '2')));
  EXPECT_EQ(both->PartsText(), "uki,squashfs");
}

TEST(ImageManifest, WhatNoGuestGetsIsNotFetchedAndSaid) {
  const auto kernel = ParseManifest(Layers(Layer("kernel", '1') + "," + Layer("initramfs", '2') +
                                           "," + Layer("uki", '3') + "," + Layer("iso", '4')));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->PartsText(), "kernel (unused: uki,iso)");
  EXPECT_EQ(kernel->parts().size(), 2U);
  const auto disk = ParseManifest(Layers(Layer("rootfs", '1') + "," + Layer("squashfs", '2')));
  EXPECT_EQ(disk->PartsText(), "disk (unused: squashfs)");
}

TEST(ImageManifest, SaysHowItsPartsArePacked) {
  const auto manifest =
      ParseManifest(Layers(Layer("kernel", '1') + "," + Layer("rootfs+gzip", '2') + "," +
                           Layer("initramfs.v1alpha1.initramfs+zstd", '3')));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->kernel->packing(), Packing::kNone);
  EXPECT_EQ(manifest->root_disk->packing(), Packing::kGzip);
  EXPECT_EQ(manifest->initramfs->packing(), Packing::kZstd);
  EXPECT_EQ(ParseManifest(ManifestText(*manifest))->root_disk->packing(), Packing::kGzip);
}

TEST(ImageManifest, P9_HostileOnesAreRefused) {
  const std::string huge = "{\"mediaType\":\"" + std::string(kPrefix) +
                           "kernel\",\"digest\":\"sha256:" + std::string(64, '1') +
                           "\",\"size\":268435457}";
  const struct {
    std::string text;
    std::string why;
  } cases[] = {
      {"{\"layers\":[]}", "nothing that a machine boots"},
      {"{}", "no list layers"},
      {"{\"layers\":7}", "no list layers"},
      {"[", ""},
      {Layers("{\"digest\":\"sha256:../../x\",\"size\":1}"), "is not one of sha256"},
      {Layers("{\"digest\":\"sha512:" + std::string(128, 'a') + "\",\"size\":1}"),
       "is not one of sha256"},
      {Layers("{\"digest\":\"sha256:" + std::string(64, 'a') + "\",\"size\":-1}"), "has no size"},
      {Layers("{\"digest\":\"sha256:" + std::string(64, 'a') + "\",\"size\":1e30}"), "has no size"},
      {Layers("7"), "is not one of sha256"},
      {Layers(Layer("kernel", '1') + "," + Layer("kernel", '2')), "two layers are a kernel"},
      {Layers(huge), "a kernel of 268435457 bytes, at most 268435456 are read"},
      {Layers(Layer("squashfs", '3')),
       "nothing that a machine boots: its layers are of type "
       "\"application/vnd.ironcore.image.squashfs\""},
      {Layers(Layer("rootfs+lz4", '3')),
       "a layer of type \"application/vnd.ironcore.image.rootfs+lz4\" is not supported"},
      {Layers(Layer("kernel", '1') + "," + Layer("floppy", '2')),
       "a layer of type \"application/vnd.ironcore.image.floppy\" is not supported"},
      {Layers(Layer("iso+gzip", '3')), "a CD image of type"},
      {Layers(Layer("kernel", '1') + "," + Layer("squashfs+zstd", '2')), "not packed"},
      {Layers(Text("a/b", '1') + "," + Text("c/d", '2') + "," + Text("e/f", '3') + "," +
              Text("g/h", '4') + "," + Text("i/j", '5')),
       "\"g/h\" and others; one of"},
      {Layers(Layer("rootfs", '1') + "," + Layer("rootfs+gzip", '2')),
       "two layers are a root disk"},
      {Layers(Layer("kernel", '1') + "," + Layer("cmdline+gzip", '2')), "not packed"},
      {std::string(5 << 20, ' '), ""},
  };
  for (const auto& hostile : cases) {
    const auto manifest = ParseManifest(hostile.text);
    ASSERT_FALSE(manifest.ok()) << hostile.text.substr(0, 200);
    EXPECT_NE(manifest.status().message().find(hostile.why), std::string_view::npos)
        << manifest.status();
  }
  std::string many = Layer("kernel", '1');
  for (int i = 0; i < 1024; ++i) many += "," + Layer("squashfs", '3');
  EXPECT_FALSE(ParseManifest(Layers(many)).ok());
}

TEST(ImageManifest, WhatIsWrittenIsReadAgain) {
  Manifest manifest;
  manifest.config =
      Descriptor{.media_type = std::string(kConfigType), .digest = std::string(64, 'c'), .size = 2};
  for (const Part part : {Part::kRootDisk, Part::kKernel, Part::kInitramfs, Part::kCommandLine}) {
    manifest.At(part) = Descriptor{
        .media_type = std::string(MediaTypeOf(part)), .digest = std::string(64, 'd'), .size = 10};
  }
  const auto again = ParseManifest(ManifestText(manifest));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->parts().size(), 5U);
  EXPECT_EQ(ManifestText(*again), ManifestText(manifest));
  Manifest other;
  for (const Part part : {Part::kUki, Part::kIso, Part::kSquashfs}) {
    other.At(part) = Descriptor{
        .media_type = std::string(MediaTypeOf(part)), .digest = std::string(64, 'd'), .size = 10};
  }
  EXPECT_EQ(ParseManifest(ManifestText(other))->parts().size(), 3U);
  EXPECT_EQ(*ParseConfig(ConfigText("console=ttyS0 \"quoted\"")), "console=ttyS0 \"quoted\"");

  const Descriptor entry{.media_type = std::string(kManifestType),
                         .digest = std::string(64, 'e'),
                         .size = 3,
                         .architecture = "arm64",
                         .tag = "12"};
  const auto entries = ParseIndex(IndexText({entry}));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->front().architecture, "arm64");
  EXPECT_EQ(entries->front().tag, "12");
}

TEST(ImageManifest, ChoosesByDigestTagAndArchitecture) {
  const auto tag = [](std::string_view name, std::string_view architecture) {
    return ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" + std::string(name) +
           "\"},\"platform\":{\"architecture\":\"" + std::string(architecture) + "\"}";
  };
  const auto entries = ParseIndex("{\"manifests\":[" + Text(kManifestType, '1', tag("a", "amd64")) +
                                  "," + Text(kManifestType, '2', tag("a", "arm64")) + "," +
                                  Text(kManifestType, '3', tag("b", "amd64")) + "]}");
  ASSERT_TRUE(entries.ok()) << entries.status();
  const auto chosen = [&](const std::string& name_and_tag, std::string_view architecture) {
    const auto entry = ChooseEntry(*entries, *ParseReference(name_and_tag), architecture);
    return entry.ok() ? entry->digest.substr(0, 1) : std::string(entry.status().message());
  };
  EXPECT_EQ(chosen("x:a", "amd64"), "1");
  EXPECT_EQ(chosen("x:a", "arm64"), "2");
  EXPECT_EQ(chosen("x:b", "arm64"), "3") << "the only one is meant, whatever it runs on";
  EXPECT_EQ(chosen("x@sha256:" + std::string(64, '2'), "amd64"), "2");
  EXPECT_EQ(chosen("x:c", "amd64"), "no entry of this tag or digest");
  EXPECT_EQ(chosen("x:a", "riscv64"), "nothing for architecture \"riscv64\"");
}

}  // namespace
}  // namespace berth::image
