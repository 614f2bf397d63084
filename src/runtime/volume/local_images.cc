// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/local_images.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "pki/digest.h"
#include "pki/digest_stream.h"
#include "runtime/volume/file_status.h"
#include "runtime/volume/image_reference.h"
#include "runtime/volume/oci_manifest.h"

namespace berth::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kIndexDepthMax = 3;

#if defined(__aarch64__)
constexpr std::string_view kHostArchitecture = "arm64";
#else
constexpr std::string_view kHostArchitecture = "amd64";
#endif

class LocalDisk final : public ImageDisk {
 public:
  explicit LocalDisk(DiskFile file) : file_(std::move(file)) {}
  const DiskFile& file() const override { return file_; }

 private:
  const DiskFile file_;
};

// A plain file, read in parts. Missing ones are NotFound.
class Reader {
 public:
  static Result<Reader> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
      return NotFound(path + " does not exist");
    }
    if (fd < 0) return FileFailed("open", path);
    Reader reader(fd, path);
    struct stat status = {};
    if (fstat(fd, &status) != 0) return FileFailed("look at", path);
    if (!S_ISREG(status.st_mode)) return BadRequest(path + " is not a plain file");
    reader.bytes_ = static_cast<int64_t>(status.st_size);
    return reader;
  }
  ~Reader() {
    if (fd_ >= 0) close(fd_);
  }
  Reader(Reader&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), bytes_(other.bytes_) {}
  Reader& operator=(Reader&&) = delete;

  int64_t bytes() const { return bytes_; }
  // Calls `take` with every part.
  template <class Take>
  Status ReadAll(Take take) {
    std::vector<char> buffer(size_t{1} << 20);
    for (;;) {
      const ssize_t count = read(fd_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return FileFailed("read", path_);
      if (count == 0) return OkStatus();
      TRY_STATUS(take(std::string_view(buffer.data(), static_cast<size_t>(count))));
    }
  }

 private:
  Reader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
  int64_t bytes_ = 0;
};

Result<std::string> ReadDocument(const std::string& path) {
  TRY(Reader reader, Reader::Open(path));
  std::string text;
  TRY_STATUS(reader.ReadAll([&](std::string_view part) -> Status {
    if (text.size() + part.size() > kOciDocumentBytesMax) {
      return BadRequest(fmt::format("{} is larger than {} bytes", path, kOciDocumentBytesMax));
    }
    text += part;
    return OkStatus();
  }));
  return text;
}

Status VerifyDigest(const std::string& path, const std::string& digest) {
  TRY(Reader reader, Reader::Open(path));
  pki::Sha256Stream hash;
  TRY_STATUS(reader.ReadAll([&](std::string_view part) {
    hash.Add(part);
    return OkStatus();
  }));
  const std::string is = hash.Hex();
  if (is == digest) return OkStatus();
  return BadRequest(
      fmt::format("{}: the content has digest sha256:{}, expected sha256:{}", path, is, digest));
}

std::string BlobOf(const std::string& layout, const OciDescriptor& descriptor) {
  return layout + "/blobs/sha256/" + descriptor.digest;
}

Status CheckBlobSize(const std::string& path, int64_t bytes, const OciDescriptor& descriptor) {
  if (bytes == descriptor.size) return OkStatus();
  return BadRequest(
      fmt::format("{} has {} bytes, its manifest says {}", path, bytes, descriptor.size));
}

Result<std::string> ReadBlob(const std::string& layout, const OciDescriptor& descriptor) {
  const std::string path = BlobOf(layout, descriptor);
  TRY(std::string text, ReadDocument(path));
  TRY_STATUS(CheckBlobSize(path, static_cast<int64_t>(text.size()), descriptor));
  if (pki::Sha256Hex(text) != descriptor.digest) {
    return BadRequest(path + ": the content does not have its digest");
  }
  return text;
}

Result<DiskFile> DiskOfLayout(const std::string& layout,
                              const ImageReference& reference,
                              std::string_view architecture) {
  TRY(const std::string index, ReadDocument(layout + "/index.json"));
  TRY(std::vector<OciDescriptor> entries, ParseOciIndex(index));
  TRY(OciDescriptor entry, ChooseEntry(entries, reference, architecture));
  for (int depth = 0; entry.is_index(); ++depth) {
    if (depth == kIndexDepthMax) return BadRequest("an index in an index in an index");
    TRY(const std::string nested, ReadBlob(layout, entry));
    TRY(entries, ParseOciIndex(nested));
    TRY(entry, ChoosePlatform(entries, architecture));
  }
  TRY(const std::string manifest, ReadBlob(layout, entry));
  TRY(const OciDescriptor layer, RootDiskOf(manifest));
  const std::string path = BlobOf(layout, layer);
  {
    TRY(const Reader blob, Reader::Open(path));
    TRY_STATUS(CheckBlobSize(path, blob.bytes(), layer));
  }
  TRY_STATUS(VerifyDigest(path, layer.digest));
  return DiskFile{.path = path, .format = DiskFormat::kRaw};
}

struct Suffix {
  std::string_view text;
  DiskFormat format;
};
constexpr std::array kSuffixes = {Suffix{".qcow2", DiskFormat::kQcow2},
                                  Suffix{".raw", DiskFormat::kRaw},
                                  Suffix{".img", DiskFormat::kRaw}};

Result<DiskFile> Find(const std::string& folder, const ImageRequest& request) {
  TRY(const ImageReference reference, ParseImageReference(request.reference));
  const std::string architecture =
      request.architecture.empty() ? std::string(kHostArchitecture) : request.architecture;
  const std::string path = folder + "/" + reference.name;
  for (const Suffix& suffix : kSuffixes) {
    if (!reference.name.ends_with(suffix.text)) continue;
    if (!reference.tag.empty()) return NotFound("a disk file has no tag");
    TRY_STATUS(Reader::Open(path));
    if (!reference.digest.empty()) TRY_STATUS(VerifyDigest(path, reference.digest));
    return DiskFile{.path = path, .format = suffix.format};
  }
  return DiskOfLayout(path, reference, architecture);
}

}  // namespace

Status LocalImages::Check(std::string_view reference) const {
  TRY_STATUS(ParseImageReference(reference));
  return OkStatus();
}

rt::Task<Result<std::unique_ptr<ImageDisk>>> LocalImages::Fetch(ImageRequest request) {
  if (folder_.empty()) {
    co_return NotFound("image " + Quote(request.reference) + ": this host has no folder of images");
  }
  const auto job = [this, &request] { return Find(folder_, request); };
  Result<DiskFile> found = co_await pool_.Run("images.find", job);
  if (!found.ok()) co_return found.status().Wrap("image " + Quote(request.reference));
  std::unique_ptr<ImageDisk> disk = std::make_unique<LocalDisk>(*std::move(found));
  co_return disk;
}

rt::Task<Result<int64_t>> LocalImages::TakenBytes() {
  if (folder_.empty()) co_return int64_t{0};
  const auto job = [this]() -> Result<int64_t> {
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
  };
  co_return co_await pool_.Run("images.measure", job);
}

}  // namespace berth::runtime
