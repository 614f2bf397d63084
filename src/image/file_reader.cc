// SPDX-License-Identifier: Apache-2.0
#include "image/file_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/file_status.h"
#include "pki/digest_stream.h"

namespace berth::image {

Result<FileReader> FileReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return NotFound(path + " does not exist");
  }
  if (fd < 0 && errno == ELOOP) return BadRequest(path + " is a link, not a plain file");
  if (fd < 0) return FileFailed("open", path);
  FileReader reader(fd, path);
  struct stat status = {};
  if (fstat(fd, &status) != 0) return FileFailed("look at", path);
  if (!S_ISREG(status.st_mode)) return BadRequest(path + " is not a plain file");
  reader.bytes_ = static_cast<int64_t>(status.st_size);
  return reader;
}

FileReader::~FileReader() {
  if (fd_ >= 0) close(fd_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), bytes_(other.bytes_) {}

Status FileReader::ReadAll(const std::function<Status(std::string_view part)>& take) {
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t count = read(fd_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileFailed("read", path_);
    if (count == 0) return OkStatus();
    TRY_STATUS(take(std::string_view(buffer.data(), static_cast<size_t>(count))));
  }
}

Result<std::string> ReadText(const std::string& path, size_t bytes_max) {
  TRY(FileReader reader, FileReader::Open(path));
  std::string text;
  TRY_STATUS(reader.ReadAll([&](std::string_view part) -> Status {
    if (text.size() + part.size() > bytes_max) {
      return BadRequest(fmt::format("{} is larger than {} bytes", path, bytes_max));
    }
    text += part;
    return OkStatus();
  }));
  return text;
}

Result<std::string> DigestOfFile(const std::string& path) {
  TRY(FileReader reader, FileReader::Open(path));
  pki::Sha256Stream hash;
  TRY_STATUS(reader.ReadAll([&](std::string_view part) {
    hash.Add(part);
    return OkStatus();
  }));
  return hash.Hex();
}

Status VerifyDigest(const std::string& path, const std::string& digest) {
  TRY(const std::string is, DigestOfFile(path));
  if (is == digest) return OkStatus();
  return BadRequest(
      fmt::format("{}: the content has digest sha256:{}, expected sha256:{}", path, is, digest));
}

}  // namespace berth::image
