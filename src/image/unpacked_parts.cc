// SPDX-License-Identifier: Apache-2.0
#include "image/unpacked_parts.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/file_status.h"
#include "image/file_reader.h"
#include "image/file_writer.h"
#include "image/layout_writer.h"
#include "image/reference.h"
#include "image/unpack.h"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

// What came out, and its digest.
struct Unpacked {
  std::string path;
  std::string digest;
};

std::vector<Unpacked> UnpackedOf(const Layout& layout, const Descriptor& part) {
  std::vector<Unpacked> found;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(UnpackedFolder(layout), failed)) {
    const std::string name = file.path().filename();
    if (!name.starts_with(part.digest + ".")) continue;
    const std::string digest = Sha256Of("sha256:" + name.substr(part.digest.size() + 1));
    if (!digest.empty()) found.push_back({.path = file.path(), .digest = digest});
  }
  return found;
}

Status CheckLimit(const std::string& path, int64_t bytes_max) {
  TRY(const FileReader reader, FileReader::Open(path));
  if (reader.bytes() <= bytes_max) return OkStatus();
  return BadRequest(
      fmt::format("{} bytes come out of it, the limit here is {}", reader.bytes(), bytes_max));
}

// What an earlier one made, if it is still that.
std::optional<std::string> Kept(const Layout& layout, const Descriptor& part) {
  for (const Unpacked& unpacked : UnpackedOf(layout, part)) {
    if (VerifyDigest(unpacked.path, unpacked.digest).ok()) return unpacked.path;
    unlink(unpacked.path.c_str());
  }
  return std::nullopt;
}

Result<std::string> Unpack(const Layout& layout,
                           const std::string& blob,
                           const Descriptor& part,
                           int64_t bytes_max,
                           const UnpackProgress& progress) {
  // Makes the folders if somebody else made the layout.
  TRY(const LayoutWriter folders, LayoutWriter::Open(layout.folder()));
  // Two that do the same at once do it twice, to the same end.
  const std::string temporary =
      PartFile(layout, fmt::format("{}.unpacked.{}.{}", part.digest, getpid(), gettid()));
  TRY(const auto writer, FileWriter::Open(temporary, FileWriter::Begin::kEmpty));
  const Status unpacked = UnpackFile(blob, part.packing(), bytes_max, *writer, progress);
  const Result<std::string> digest =
      unpacked.ok() ? writer->Finish() : Result<std::string>(unpacked);
  if (!digest.ok()) {
    unlink(temporary.c_str());  // it may be what fills the disk
    return digest.status();
  }
  std::string path = fmt::format("{}/{}.{}", UnpackedFolder(layout), part.digest, *digest);
  if (rename(temporary.c_str(), path.c_str()) != 0) return FileFailed("put in place", path);
  TRY_STATUS(SyncFolder(UnpackedFolder(layout)));
  return path;
}

}  // namespace

std::string UnpackedFolder(const Layout& layout) { return layout.folder() + "/unpacked"; }

Result<std::string> ReadyFile(const Layout& layout,
                              const Descriptor& part,
                              int64_t bytes_max,
                              const UnpackProgress& progress) {
  TRY(std::string blob, layout.VerifiedFile(part));
  if (part.packing() == Packing::kNone) return blob;
  if (std::optional<std::string> kept = Kept(layout, part); kept.has_value()) {
    const Status fits = CheckLimit(*kept, bytes_max);
    if (!fits.ok()) return fits.Wrap(blob);
    return *std::move(kept);
  }
  return Unpack(layout, blob, part, bytes_max, progress);
}

bool IsUnpacked(const Layout& layout, const Descriptor& part) {
  return !UnpackedOf(layout, part).empty();
}

int64_t UnpackedBytes(const Layout& layout, const Descriptor& part) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  if (part.packing() == Packing::kNone) return 0;
  int64_t taken = 0;
  for (const Unpacked& unpacked : UnpackedOf(layout, part)) {
    struct stat status = {};
    if (lstat(unpacked.path.c_str(), &status) == 0) taken += int64_t{status.st_blocks} * kBlock;
  }
  return taken;
}

}  // namespace berth::image
