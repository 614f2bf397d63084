// SPDX-License-Identifier: Apache-2.0
#include "image/image_folder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/file_status.h"
#include "base/strings.h"
#include "image/file_reader.h"
#include "image/layout_writer.h"
#include "image/unpacked_parts.h"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultCommandLine = "console=ttyS0";
constexpr int kNameDepthMax = 8;

struct Suffix {
  std::string_view text;
  RootDisk::Format format;
};
constexpr std::array kSuffixes = {Suffix{".qcow2", RootDisk::Format::kQcow2},
                                  Suffix{".raw", RootDisk::Format::kRaw},
                                  Suffix{".img", RootDisk::Format::kRaw}};

const Suffix* SuffixOf(std::string_view name) {
  for (const Suffix& suffix : kSuffixes) {
    if (name.ends_with(suffix.text)) return &suffix;
  }
  return nullptr;
}

bool IsFile(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}
int64_t BytesOf(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 ? int64_t{status.st_size} : 0;
}

Result<ImageFiles> DiskFileOf(const std::string& path,
                              const Suffix& suffix,
                              const Reference& reference) {
  if (!reference.tag.empty()) return NotFound("a disk file has no tag");
  TRY_STATUS(FileReader::Open(path));
  if (!reference.digest.empty()) TRY_STATUS(VerifyDigest(path, reference.digest));
  ImageFiles files;
  files.disk = RootDisk{.path = path, .format = suffix.format};
  return files;
}

Result<ImageFiles> PlainKernelOf(const std::string& folder, const Reference& reference) {
  if (!reference.tag.empty() || !reference.digest.empty()) {
    return NotFound("a kernel in a folder has no tag and no digest");
  }
  KernelFiles kernel{.kernel = folder + "/vmlinuz",
                     .initramfs = folder + "/initramfs",
                     .command_line = std::string(kDefaultCommandLine)};
  if (!IsFile(kernel.initramfs)) kernel.initramfs.clear();
  const auto line = ReadText(folder + "/cmdline", kCommandLineBytesMax);
  if (line.ok()) kernel.command_line = Trim(*line);
  if (!line.ok() && !line.status().Is(Reason::kNotFound)) return line.status();
  ImageFiles files;
  files.kernel = std::move(kernel);
  return files;
}

ListedImage Describe(const Layout& layout, std::string reference, const Descriptor& entry) {
  ListedImage listed;
  listed.reference = std::move(reference);
  listed.digest = entry.digest;
  const Result<FoundImage> image = layout.Read(entry, kHostArchitecture);
  if (!image.ok()) {
    listed.error = image.status().message();
    return listed;
  }
  listed.has_disk = image->manifest.root_disk.has_value();
  listed.has_kernel = image->manifest.kernel.has_value();
  listed.parts = image->manifest.PartsText();
  for (const Descriptor& part : image->manifest.parts()) {
    listed.bytes += part.size;
    const int64_t there = BytesOf(layout.FileOf(part));
    if (there == part.size || !listed.error.empty()) continue;
    listed.error = fmt::format("{} of {} bytes of sha256:{}", there, part.size, part.digest);
  }
  return listed;
}

void ListLayout(const Layout& layout, const std::string& name, std::vector<ListedImage>& listed) {
  const Result<std::vector<Descriptor>> entries = layout.Entries();
  if (!entries.ok()) {
    ListedImage broken;
    broken.reference = name;
    broken.error = entries.status().message();
    listed.push_back(std::move(broken));
    return;
  }
  for (const Descriptor& entry : *entries) {
    std::string reference = name;
    if (!name.empty() && !entry.tag.empty()) reference += ":";
    listed.push_back(Describe(layout, reference + entry.tag, entry));
  }
}

// Images in `folder`, whose own name is `name`.
Status ListInto(const std::string& folder,
                const std::string& name,
                int depth,
                std::vector<ListedImage>& listed) {
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    const std::string own = file.path().filename();
    if (own.starts_with(".")) continue;
    const std::string path = file.path();
    const std::string full = name.empty() ? own : name + "/" + own;
    if (file.is_directory() && !file.is_symlink()) {
      if (Layout(path).Exists()) {
        ListLayout(Layout(path), full, listed);
      } else if (IsFile(path + "/vmlinuz")) {
        ListedImage kernel;
        kernel.reference = full;
        kernel.bytes = BytesOf(path + "/vmlinuz") + BytesOf(path + "/initramfs");
        kernel.has_kernel = true;
        kernel.parts = "kernel";
        listed.push_back(std::move(kernel));
      } else if (depth < kNameDepthMax) {
        TRY_STATUS(ListInto(path, full, depth + 1, listed));
      }
    } else if (SuffixOf(own) != nullptr && IsFile(path)) {
      ListedImage disk;
      disk.reference = full;
      disk.bytes = BytesOf(path);
      disk.has_disk = true;
      disk.parts = "disk";
      listed.push_back(std::move(disk));
    }
  }
  if (failed && failed != std::errc::no_such_file_or_directory) {
    return Internal(fmt::format("read folder {}: {}", folder, failed.message()));
  }
  return OkStatus();
}

Status RemoveFolder(const std::string& folder) {
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (!failed) return OkStatus();
  return Internal(fmt::format("remove {}: {}", folder, failed.message()));
}

// Opens the parts of an image one after the other, and tells how far all of them are.
class PartOpener {
 public:
  PartOpener(const Layout& layout, const Manifest& manifest, const UnpackProgress& progress)
      : layout_(layout), progress_(progress) {
    for (const Descriptor& part : manifest.parts()) {
      if (part.packing() != Packing::kNone) packed_bytes_ += part.size;
    }
  }

  // "" for one that is not there.
  Result<std::string> operator()(const std::optional<Descriptor>& part, int64_t bytes_max) {
    if (!part.has_value()) return std::string();
    UnpackProgress own;
    if (progress_ != nullptr) {
      own = [this](int64_t bytes, int64_t of) {
        (void)of;
        progress_(before_ + bytes, packed_bytes_);
      };
    }
    TRY(std::string path, ReadyFile(layout_, *part, bytes_max, own));
    if (part->packing() != Packing::kNone) before_ += part->size;
    return path;
  }

 private:
  const Layout& layout_;
  const UnpackProgress& progress_;
  int64_t packed_bytes_ = 0;
  int64_t before_ = 0;  // of parts that are done
};

// A layout without an entry.
Status RemoveIfEmpty(const Layout& layout) {
  TRY(const LayoutHold hold, LayoutHold::Take(layout.folder(), LayoutHold::Kind::kAlone));
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  return entries.empty() ? RemoveFolder(layout.folder()) : OkStatus();
}

}  // namespace

Result<ImageFiles> FilesOf(const Layout& layout,
                           const FoundImage& image,
                           LayoutHold hold,
                           int64_t disk_bytes_max,
                           const UnpackProgress& progress) {
  const Manifest& manifest = image.manifest;
  PartOpener open(layout, manifest, progress);
  ImageFiles files;
  files.digest = image.entry.digest;
  if (manifest.root_disk.has_value()) {
    files.disk = RootDisk{};
    TRY(files.disk->path, open(manifest.root_disk, disk_bytes_max));
  }
  if (manifest.kernel.has_value()) {
    files.kernel = KernelFiles{};
    TRY(files.kernel->kernel, open(manifest.kernel, kKernelBytesMax));
    TRY(files.kernel->initramfs, open(manifest.initramfs, kInitramfsBytesMax));
    files.kernel->command_line =
        image.command_line.empty() ? std::string(kDefaultCommandLine) : image.command_line;
  }
  if (manifest.uki.has_value()) {
    files.uki = KernelFiles{};
    TRY(files.uki->kernel, open(manifest.uki, kUkiBytesMax));
    files.uki->command_line = image.command_line;
  }
  // They are never packed.
  TRY(files.iso, open(manifest.iso, INT64_MAX));
  TRY(files.squashfs, open(manifest.squashfs, INT64_MAX));
  files.hold.emplace(std::move(hold));
  return files;
}

Result<ImageFiles> ImageFolder::Find(const Reference& reference,
                                     std::string_view architecture,
                                     int64_t disk_bytes_max,
                                     const UnpackProgress& progress) const {
  const std::string path = folder_ + "/" + reference.name;
  if (const Suffix* const suffix = SuffixOf(reference.name); suffix != nullptr) {
    return DiskFileOf(path, *suffix, reference);
  }
  const Layout layout = LayoutOf(reference);
  if (!layout.Exists() && IsFile(path + "/vmlinuz")) return PlainKernelOf(path, reference);
  TRY(LayoutHold hold, LayoutHold::Take(path, LayoutHold::Kind::kShared));
  TRY(const FoundImage image, layout.Find(reference, architecture));
  return FilesOf(layout, image, std::move(hold), disk_bytes_max, progress);
}

Result<std::vector<ListedImage>> ImageFolder::List() const {
  std::vector<ListedImage> listed;
  TRY_STATUS(ListInto(folder_, "", 0, listed));
  if (registry_layout().Exists()) ListLayout(registry_layout(), "", listed);
  std::ranges::sort(listed, {}, &ListedImage::reference);
  return listed;
}

Status ImageFolder::Remove(const Reference& reference, WallTime now) const {
  const bool is_remote = !reference.registry.empty();
  const std::string path = folder_ + "/" + reference.name;
  if (!is_remote && SuffixOf(reference.name) != nullptr) {
    TRY_STATUS(FileReader::Open(path));
    return unlink(path.c_str()) == 0 ? OkStatus() : FileFailed("remove", path);
  }
  const Layout layout = is_remote ? registry_layout() : LayoutOf(reference);
  if (!layout.Exists()) {
    if (!is_remote && IsFile(path + "/vmlinuz")) return RemoveFolder(path);
    return NotFound("image " + Quote(ToText(reference)) + " is not there");
  }
  Reference meant = reference;
  meant.digest.clear();
  const std::string tag = is_remote ? ToText(meant) : reference.tag;
  const auto is_meant = [&](const Descriptor& entry) {
    if (!reference.digest.empty()) return entry.digest == reference.digest;
    return tag.empty() || entry.tag == tag;
  };
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  if (std::ranges::none_of(entries, is_meant)) {
    return NotFound("image " + Quote(ToText(reference)) + " is not there");
  }
  TRY_STATUS(RemoveEntries(layout, is_meant));
  TRY_STATUS(Sweep(layout, now));
  return is_remote ? OkStatus() : RemoveIfEmpty(layout);
}

Result<int64_t> ImageFolder::TakenBytes() const {
  constexpr int64_t kBlock = 512;  // of st_blocks
  int64_t taken = 0;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, failed)) {
    struct stat status = {};
    if (lstat(entry.path().c_str(), &status) == 0) taken += int64_t{status.st_blocks} * kBlock;
  }
  if (failed && failed != std::errc::no_such_file_or_directory) {
    return Internal(fmt::format("read folder {}: {}", folder_, failed.message()));
  }
  return taken;
}

}  // namespace berth::image
