// SPDX-License-Identifier: Apache-2.0
// The images of a folder of this host. NAME is an OCI image layout (NAME/index.json), a kernel
// (NAME/vmlinuz, perhaps NAME/initramfs and NAME/cmdline), or a disk file (NAME.qcow2, NAME.raw,
// NAME.img). Nothing outside of the folder has a name. All calls block.
//
// Images of registries are together in one layout, FOLDER/.registry, whose tags are whole
// references: what they share is there once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "image/layout.h"
#include "image/reference.h"
#include "image/unpack.h"

namespace berth::image {

struct RootDisk {
  enum class Format : uint8_t { kRaw, kQcow2 };
  std::string path;
  Format format = Format::kRaw;
};
struct KernelFiles {
  std::string kernel;
  std::string initramfs;     // "" for none
  std::string command_line;  // "" only of a unified kernel image, which has its own
};

// What a guest is made of: at least a disk, a kernel, a unified kernel image or a CD. The files
// stay as they are while this lives.
struct ImageFiles {
  std::string digest = {};  // of the manifest; "" if there is none
  std::optional<RootDisk> disk = {};
  std::optional<KernelFiles> kernel = {};
  std::optional<KernelFiles> uki = {};  // needs EFI firmware; never beside a kernel
  std::string iso = {};                 // "" for none
  std::string squashfs = {};            // "" for none
  std::optional<LayoutHold> hold = {};
};

// Verifies every part, and unpacks what is packed. BadRequest if more than `disk_bytes_max` bytes
// come out of a packed disk; kernel and memory disk have limits of their own. `progress` is of all
// packed parts together.
Result<ImageFiles> FilesOf(const Layout& layout,
                           const FoundImage& image,
                           LayoutHold hold,
                           int64_t disk_bytes_max,
                           const UnpackProgress& progress = {});

struct ListedImage {
  std::string reference;
  std::string digest;  // "" if it has none
  int64_t bytes = 0;
  bool has_disk = false;
  bool has_kernel = false;
  std::string parts;  // for people, as Manifest::PartsText
  std::string error;  // why it cannot be used; "" if it can
};

class ImageFolder {
 public:
  explicit ImageFolder(std::string folder) : folder_(std::move(folder)) {}

  const std::string& path() const { return folder_; }
  Layout registry_layout() const { return Layout(folder_ + "/.registry"); }
  // The layout of an image of this host.
  Layout LayoutOf(const Reference& reference) const {
    return Layout(folder_ + "/" + reference.name);
  }

  // An image of this host, whole. NotFound: there is none, or none for the architecture;
  // BadRequest: it is not what its digests or its manifest say, or too much comes out of it.
  Result<ImageFiles> Find(const Reference& reference,
                          std::string_view architecture,
                          int64_t disk_bytes_max = kDiskBytesMax,
                          const UnpackProgress& progress = {}) const;
  // Everything, by name. Parts are looked at, not verified.
  Result<std::vector<ListedImage>> List() const;
  // NotFound if there is no such image. Conflict if it is in use: its name is gone, its bytes go
  // with the next that is removed there. `now` as in Sweep.
  Status Remove(const Reference& reference, WallTime now) const;
  // What all of it takes of the disk.
  Result<int64_t> TakenBytes() const;

 private:
  std::string folder_;
};

}  // namespace berth::image
