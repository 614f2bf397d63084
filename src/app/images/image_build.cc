// SPDX-License-Identifier: Apache-2.0
#include "app/images/image_build.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/file_status.h"
#include "cli/failure.h"
#include "image/file_reader.h"
#include "image/file_writer.h"
#include "image/layout_writer.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;
using image::Part;

constexpr std::string_view kDiskText =
    "This file is on the disk of the demo image. Every volume that is made from the image begins\n"
    "as a copy of that disk.\n";

// A folder that goes with this.
class Workshop {
 public:
  static Result<Workshop> Open() {
    std::string pattern = fs::temp_directory_path() / "berth-image-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return FileFailed("make folder", pattern);
    return Workshop(pattern);
  }
  ~Workshop() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Workshop(Workshop&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Workshop& operator=(Workshop&&) = delete;
  std::string Sub(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  explicit Workshop(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Writes parts, and tells how far all of them are.
class PartWriter {
 public:
  PartWriter(image::LayoutWriter& writer, const BuildProgress& progress, int64_t of)
      : writer_(writer), progress_(progress), of_(of) {}
  Result<image::Descriptor> Add(Part part, image::FileReader file) {
    const auto note = [this](int64_t bytes) { Note(bytes); };
    return writer_.AddFile(image::MediaTypeOf(part), std::move(file), note);
  }
  Result<image::Descriptor> AddText(Part part, const std::string& text) {
    TRY(image::Descriptor added, writer_.AddText(image::MediaTypeOf(part), text));
    Note(static_cast<int64_t>(text.size()));
    return added;
  }

 private:
  void Note(int64_t bytes) {
    done_ += bytes;
    if (progress_ != nullptr) progress_(done_, of_);
  }

  image::LayoutWriter& writer_;
  const BuildProgress& progress_;
  const int64_t of_;
  int64_t done_ = 0;
};

Status PutBootBlock(const std::string& disk) {
  const std::string block = image::DemoBootBlock();
  const int fd = open(disk.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return FileFailed("open", disk);
  const bool done = pwrite(fd, block.data(), block.size(), 0) == ssize_t(block.size());
  const Status status = done ? OkStatus() : FileFailed("write", disk);
  close(fd);
  return status;
}

// A file system with one file, which also says hello when a machine starts from it.
Status MakeDemoDisk(const Workshop& workshop, const RunProgram& run_program) {
  const std::string content = workshop.Sub("content");
  std::error_code failed;
  fs::create_directory(content, failed);
  TRY_STATUS(image::ReplaceFile(content + "/hello", kDiskText));
  const std::string disk = workshop.Sub("disk.raw");
  const Status made = run_program({"/sbin/mke2fs",
                                   "-q",
                                   "-t",
                                   "ext2",
                                   "-L",
                                   "berth-demo",
                                   "-E",
                                   "root_owner=0:0",
                                   "-d",
                                   content,
                                   disk,
                                   "1M"});
  if (!made.ok()) return cli::Advise(made, "install Debian's e2fsprogs, which has mke2fs");
  return PutBootBlock(disk);
}

Status AddDemo(image::LayoutWriter& writer,
               const image::DemoSources& sources,
               const RunProgram& run_program,
               const BuildProgress& progress,
               image::Manifest& manifest,
               std::string& command_line) {
  TRY(const image::DemoGuest guest, image::MakeDemoGuest(sources));
  TRY(const Workshop workshop, Workshop::Open());
  TRY_STATUS(MakeDemoDisk(workshop, run_program));
  TRY(image::FileReader disk, image::FileReader::Open(workshop.Sub("disk.raw")));
  TRY(image::FileReader kernel, image::FileReader::Open(guest.kernel));
  PartWriter parts(writer,
                   progress,
                   disk.bytes() + kernel.bytes() + static_cast<int64_t>(guest.initramfs.size()));
  TRY(manifest.root_disk, parts.Add(Part::kRootDisk, std::move(disk)));
  TRY(manifest.kernel, parts.Add(Part::kKernel, std::move(kernel)));
  TRY(manifest.initramfs, parts.AddText(Part::kInitramfs, guest.initramfs));
  if (command_line.empty()) command_line = guest.command_line;
  return OkStatus();
}

Status AddFiles(image::LayoutWriter& writer,
                OpenedParts parts,
                const BuildProgress& progress,
                image::Manifest& manifest) {
  int64_t of = 0;
  for (const auto& [part, file] : parts) of += file.bytes();
  PartWriter part_writer(writer, progress, of);
  for (auto& [part, file] : parts) {
    TRY(manifest.At(part), part_writer.Add(part, std::move(file)));
  }
  return OkStatus();
}

Status CheckRecipe(const ImageRecipe& recipe) {
  const bool has_line_for = !recipe.kernel.empty() || !recipe.uki.empty();
  if (!recipe.is_demo() && ((recipe.kernel.empty() && !recipe.initramfs.empty()) ||
                            (!has_line_for && !recipe.command_line.empty()))) {
    return BadRequest("an initramfs and a command line are a kernel's: name one with --kernel");
  }
  if (recipe.is_demo() && !recipe.initramfs.empty()) {
    return BadRequest("an initramfs needs its kernel: name one with --kernel");
  }
  if (!has_line_for && !recipe.squashfs.empty()) {
    return BadRequest("a squashfs needs a kernel that mounts it: name one with --kernel or --uki");
  }
  if (recipe.command_line.size() > static_cast<size_t>(image::kCommandLineBytesMax)) {
    return BadRequest("the command line has " + std::to_string(recipe.command_line.size()) +
                      " bytes, at most " + std::to_string(image::kCommandLineBytesMax));
  }
  return OkStatus();
}

Result<BuiltImage> Build(image::LayoutWriter& writer,
                         std::string_view tag,
                         const ImageRecipe& recipe,
                         OpenedParts parts,
                         const image::DemoSources& demo,
                         const RunProgram& run_program,
                         const BuildProgress& progress) {
  BuiltImage built;
  std::string command_line = recipe.command_line;
  if (recipe.is_demo()) {
    TRY_STATUS(AddDemo(writer, demo, run_program, progress, built.manifest, command_line));
  } else {
    TRY_STATUS(AddFiles(writer, std::move(parts), progress, built.manifest));
  }
  TRY(built.manifest.config, writer.AddText(image::kConfigType, image::ConfigText(command_line)));
  // What nobody would read is not written.
  TRY(const image::Manifest read, image::ParseManifest(image::ManifestText(built.manifest)));
  if (!read.unused.empty()) {
    return BadRequest("a machine boots its kernel, and gets nothing of what is beside it: " +
                      read.PartsText());
  }
  TRY(built.entry, writer.AddManifest(built.manifest, tag, recipe.architecture));
  return built;
}

}  // namespace

Result<OpenedParts> OpenParts(const ImageRecipe& recipe) {
  TRY_STATUS(CheckRecipe(recipe));
  const std::pair<Part, const std::string*> named[] = {{Part::kRootDisk, &recipe.disk},
                                                       {Part::kKernel, &recipe.kernel},
                                                       {Part::kInitramfs, &recipe.initramfs},
                                                       {Part::kUki, &recipe.uki},
                                                       {Part::kIso, &recipe.iso},
                                                       {Part::kSquashfs, &recipe.squashfs}};
  OpenedParts parts;
  for (const auto& [part, path] : named) {
    if (path->empty()) continue;
    TRY(image::FileReader file, image::FileReader::Open(*path));
    parts.emplace(part, std::move(file));
  }
  return parts;
}

Result<BuiltImage> BuildImage(const std::string& layout_folder,
                              std::string_view tag,
                              const ImageRecipe& recipe,
                              OpenedParts parts,
                              const image::DemoSources& demo,
                              const RunProgram& run_program,
                              const BuildProgress& progress) {
  TRY(image::LayoutWriter writer, image::LayoutWriter::Open(layout_folder));
  return Build(writer, tag, recipe, std::move(parts), demo, run_program, progress);
}

}  // namespace berth::app
