// SPDX-License-Identifier: Apache-2.0
#include "image/layout.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file_status.h"
#include "base/strings.h"
#include "image/file_reader.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

constexpr int kIndexDepthMax = 3;

Status CheckSize(const std::string& path, int64_t bytes, const Descriptor& descriptor) {
  if (bytes == descriptor.size) return OkStatus();
  return BadRequest(
      fmt::format("{} has {} bytes, its manifest says {}", path, bytes, descriptor.size));
}

// Goes to a hypervisor as one argument: a line of printable characters.
Result<std::string> CheckedLine(std::string_view text) {
  const std::string line(Trim(text));
  const bool printable = std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; });
  if (!printable) return BadRequest("command line " + Quote(line) + " is not one of plain text");
  if (line.size() > kCommandLineBytesMax) {
    return BadRequest(fmt::format(
        "a command line of {} bytes, at most {} are read", line.size(), kCommandLineBytesMax));
  }
  return line;
}

}  // namespace

Result<LayoutHold> LayoutHold::Take(const std::string& folder, Kind kind) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return NotFound(folder + " does not exist");
  if (fd < 0) return FileFailed("open", folder);
  LayoutHold hold(fd);
  const int operation = kind == Kind::kShared ? LOCK_SH : LOCK_EX | LOCK_NB;
  while (flock(fd, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Conflict(folder + " is in use");
    return FileFailed("lock", folder);
  }
  return hold;
}

LayoutHold::~LayoutHold() {
  if (fd_ >= 0) close(fd_);
}
LayoutHold::LayoutHold(LayoutHold&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

bool Layout::Exists() const {
  std::error_code failed;
  return std::filesystem::exists(folder_ + "/index.json", failed);
}

Result<std::vector<Descriptor>> Layout::Entries() const {
  const std::string path = folder_ + "/index.json";
  TRY(const std::string text, ReadText(path, kDocumentBytesMax));
  Result<std::vector<Descriptor>> entries = ParseIndex(text);
  if (!entries.ok()) return entries.status().Wrap(path);
  return entries;
}

std::string Layout::FileOf(const Descriptor& descriptor) const {
  return folder_ + "/blobs/sha256/" + descriptor.digest;
}

Result<std::string> Layout::Document(const Descriptor& descriptor) const {
  const std::string path = FileOf(descriptor);
  TRY(std::string text, ReadText(path, kDocumentBytesMax));
  TRY_STATUS(CheckSize(path, static_cast<int64_t>(text.size()), descriptor));
  if (pki::Sha256Hex(text) != descriptor.digest) {
    return BadRequest(path + ": the content does not have its digest");
  }
  return text;
}

Result<FoundImage> Layout::Find(const Reference& reference, std::string_view architecture) const {
  TRY(const std::vector<Descriptor> entries, Entries());
  TRY(Descriptor entry, ChooseEntry(entries, reference, architecture));
  return Read(std::move(entry), architecture);
}

Result<FoundImage> Layout::Read(Descriptor entry, std::string_view architecture) const {
  for (int depth = 0; entry.is_index(); ++depth) {
    if (depth == kIndexDepthMax) return BadRequest("an index in an index in an index");
    TRY(const std::string nested, Document(entry));
    TRY(const std::vector<Descriptor> entries, ParseIndex(nested));
    TRY(entry, ChoosePlatform(entries, architecture));
  }
  TRY(const std::string text, Document(entry));
  FoundImage image{.entry = entry, .manifest = {}, .command_line = {}};
  TRY(image.manifest, ParseManifest(text));
  if (image.manifest.command_line.has_value()) {
    TRY(const std::string line, Document(*image.manifest.command_line));
    TRY(image.command_line, CheckedLine(line));
  } else if (image.manifest.config.has_value()) {
    TRY(const std::string config, Document(*image.manifest.config));
    TRY(const std::string line, ParseConfig(config));
    TRY(image.command_line, CheckedLine(line));
  }
  return image;
}

Result<std::string> Layout::VerifiedFile(const Descriptor& part) const {
  std::string path = FileOf(part);
  {
    TRY(const FileReader blob, FileReader::Open(path));
    TRY_STATUS(CheckSize(path, blob.bytes(), part));
  }
  TRY_STATUS(VerifyDigest(path, part.digest));
  return path;
}

}  // namespace berth::image
