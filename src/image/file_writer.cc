// SPDX-License-Identifier: Apache-2.0
#include "image/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/file_status.h"
#include "image/file_reader.h"

namespace berth::image {
namespace {

// Less would not be a hole on most file systems.
constexpr size_t kBlockBytes = 64 << 10;
constexpr mode_t kReadableForAll = 0644;

bool IsZero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

// A hole is a whole block: what comes in pieces is written.
bool IsHole(std::string_view block) { return block.size() == kBlockBytes && IsZero(block); }

// What of `bytes` is in the block in which something behind `behind` bytes begins.
std::string_view FirstBlock(int64_t behind, std::string_view bytes) {
  return bytes.substr(0, kBlockBytes - static_cast<size_t>(behind) % kBlockBytes);
}

Status Replace(const std::string& path, const std::function<Status(FileWriter&)>& fill) {
  const std::string part = path + ".new";
  TRY(const auto writer, FileWriter::Open(part, FileWriter::Begin::kEmpty));
  Status done = fill(*writer);
  if (done.ok()) done = writer->Finish().status();
  if (done.ok() && rename(part.c_str(), path.c_str()) != 0) done = FileFailed("put in place", path);
  if (!done.ok()) {
    unlink(part.c_str());  // it may be what fills the disk
    return done;
  }
  return SyncFolder(std::filesystem::path(path).parent_path());
}

}  // namespace

int64_t WrittenBytes(int64_t behind, std::string_view bytes) {
  int64_t written = 0;
  while (!bytes.empty()) {
    const std::string_view block = FirstBlock(behind, bytes);
    if (!IsHole(block)) written += static_cast<int64_t>(block.size());
    behind += static_cast<int64_t>(block.size());
    bytes.remove_prefix(block.size());
  }
  return written;
}

Result<std::unique_ptr<FileWriter>> FileWriter::Open(const std::string& path, Begin begin) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return FileFailed("make", path);
  std::unique_ptr<FileWriter> writer(new FileWriter(fd, path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? Conflict(path + " is being written") : FileFailed("lock", path);
  }
  // Not before it is ours.
  if (begin == Begin::kEmpty && ftruncate(fd, 0) != 0) return FileFailed("empty", path);
  if (begin == Begin::kResume) {
    TRY(FileReader reader, FileReader::Open(path));
    TRY_STATUS(reader.ReadAll([&writer](std::string_view part) {
      writer->hash_.Add(part);
      writer->bytes_ += static_cast<int64_t>(part.size());
      return OkStatus();
    }));
  }
  return writer;
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) close(fd_);
}

Status FileWriter::Append(std::string_view bytes) {
  hash_.Add(bytes);
  while (!bytes.empty()) {
    const std::string_view block = FirstBlock(bytes_, bytes);
    TRY_STATUS(AppendBlock(block));
    bytes.remove_prefix(block.size());
  }
  return OkStatus();
}

Status FileWriter::AppendBlock(std::string_view bytes) {
  for (std::string_view left = IsHole(bytes) ? std::string_view() : bytes; !left.empty();) {
    const auto at = static_cast<off_t>(bytes_ + static_cast<int64_t>(bytes.size() - left.size()));
    const ssize_t count = pwrite(fd_, left.data(), left.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileFailed("write", path_);
    left.remove_prefix(static_cast<size_t>(count));
  }
  bytes_ += static_cast<int64_t>(bytes.size());
  return OkStatus();
}

Result<std::string> FileWriter::Finish() {
  const bool done = ftruncate(fd_, static_cast<off_t>(bytes_)) == 0 &&
                    fchmod(fd_, kReadableForAll) == 0 && fsync(fd_) == 0;
  if (!done) return FileFailed("finish", path_);
  close(std::exchange(fd_, -1));
  return hash_.Hex();
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  return Replace(path, [text](FileWriter& writer) { return writer.Append(text); });
}

Status CopyFile(const std::string& from, const std::string& to) {
  TRY(FileReader reader, FileReader::Open(from));
  return Replace(to, [&reader](FileWriter& writer) {
    return reader.ReadAll([&writer](std::string_view part) { return writer.Append(part); });
  });
}

}  // namespace berth::image
