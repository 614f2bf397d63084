// SPDX-License-Identifier: Apache-2.0
// The documents of an OCI image that a machine boots: indexes, manifests and descriptors. Pure.
// Whatever is read here came from somebody else: every number has a limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/reference.h"

namespace berth::image {

// An index or a manifest is a page of text.
constexpr size_t kDocumentBytesMax = 4 << 20;
// The largest parts that make sense. Disks are limited by the room that there is for them.
constexpr int64_t kKernelBytesMax = int64_t{256} << 20;
constexpr int64_t kInitramfsBytesMax = int64_t{1} << 30;
constexpr int64_t kUkiBytesMax = kKernelBytesMax + kInitramfsBytesMax;  // both are in it
// What comes out of a packed disk, unless somebody says less.
constexpr int64_t kDiskBytesMax = int64_t{64} << 30;
constexpr int64_t kCommandLineBytesMax = 2048;  // of Linux on x86

constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kConfigType = "application/vnd.ironcore.image.config.v1+json";

#if defined(__aarch64__)
constexpr std::string_view kHostArchitecture = "arm64";
#else
constexpr std::string_view kHostArchitecture = "amd64";
#endif

// How a layer was packed for its way: the end of its media type, "+gzip" or "+zstd".
enum class Packing : uint8_t { kNone, kGzip, kZstd };

enum class Part : uint8_t {
  kRootDisk,
  kKernel,
  kInitramfs,
  kCommandLine,
  kUki,       // kernel, initramfs and command line in one program for EFI firmware
  kIso,       // a CD that boots
  kSquashfs,  // a file system that a kernel mounts
};
// The newest name that a layer of this kind has.
std::string_view MediaTypeOf(Part part);

struct Descriptor {
  std::string media_type;
  std::string digest;  // 64 hexadecimal characters of SHA-256
  int64_t size = 0;
  std::string architecture = {};  // of the platform; "" if none is named
  std::string tag = {};           // of an entry in a layout's index
  bool is_index() const;
  Packing packing() const;
};

// What a guest can be made of: it boots the kernel; else, under EFI firmware, the unified kernel
// image; else the disk; else the CD.
struct Manifest {
  std::optional<Descriptor> config;
  std::optional<Descriptor> root_disk;  // raw, once it is unpacked
  std::optional<Descriptor> kernel;
  std::optional<Descriptor> initramfs;
  std::optional<Descriptor> command_line;
  std::optional<Descriptor> uki;       // not beside a kernel
  std::optional<Descriptor> iso;       // not beside a kernel
  std::optional<Descriptor> squashfs;  // beside a kernel or a unified kernel image
  // Layers that are known and that no guest of this image gets: they are not fetched.
  std::vector<Part> unused;

  std::optional<Descriptor>& At(Part part);
  // All that are there, the config first.
  std::vector<Descriptor> parts() const;
  // For people: "kernel,disk,squashfs (unused: uki)".
  std::string PartsText() const;
};

// Entries of an index, whatever they are. BadRequest names what is wrong.
Result<std::vector<Descriptor>> ParseIndex(std::string_view json);
// Layers of a type that is not for machines are passed over; one that is, and is not known, is
// refused by its name.
Result<Manifest> ParseManifest(std::string_view json);
// The command line of an image's config; "" if it has none.
Result<std::string> ParseConfig(std::string_view json);

std::string IndexText(const std::vector<Descriptor>& entries);
std::string ManifestText(const Manifest& manifest);
std::string ConfigText(std::string_view command_line);

// The entry of a layout's index that a reference means: by digest, else by tag, else the only one.
Result<Descriptor> ChooseEntry(const std::vector<Descriptor>& entries,
                               const Reference& reference,
                               std::string_view architecture);
// The entry of an image's index for an architecture.
Result<Descriptor> ChoosePlatform(const std::vector<Descriptor>& entries,
                                  std::string_view architecture);

}  // namespace berth::image
