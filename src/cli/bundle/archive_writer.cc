// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle/archive_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameMax = 100;
constexpr size_t kWriteMax = size_t{1} << 30;

// The header of a file, POSIX.1-1988 (ustar).
struct Header {
  std::array<char, kBlock> bytes{};

  void Put(size_t at, std::string_view text) {
    std::memcpy(bytes.data() + at, text.data(), text.size());
  }
  void Seal() {
    Put(148, "        ");
    const unsigned sum =
        std::accumulate(bytes.begin(), bytes.end(), 0U, [](unsigned total, char c) {
          return total + static_cast<unsigned char>(c);
        });
    Put(148, fmt::format("{:06o}", sum));
    bytes[154] = '\0';
  }
};

Header HeaderOf(std::string_view name, size_t size, int64_t seconds) {
  Header header;
  header.Put(0, name);
  header.Put(100, "0000600");
  header.Put(108, "0000000");
  header.Put(116, "0000000");
  header.Put(124, fmt::format("{:011o}", size));
  header.Put(136, fmt::format("{:011o}", seconds));
  header.Put(156, "0");
  header.Put(257,
             std::string_view("ustar\0"
                              "00",
                              8));
  header.Seal();
  return header;
}

}  // namespace

struct ArchiveWriter::File {
  gzFile stream = nullptr;
  std::string temporary;

  ~File() {
    if (stream != nullptr) gzclose(stream);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
};

ArchiveWriter::ArchiveWriter(std::string path, std::string folder, WallTime now)
    : path_(std::move(path)), folder_(std::move(folder)), now_(now) {}
ArchiveWriter::~ArchiveWriter() = default;

Result<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Begin(const std::string& path,
                                                            std::string folder,
                                                            WallTime now) {
  if (::access(path.c_str(), F_OK) == 0) {
    return Conflict(fmt::format("file {} is there already: name another one", Quote(path)));
  }
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter(path, std::move(folder), now));
  auto file = std::make_unique<File>();
  const std::string temporary = path + ".tmp";
  const int fd =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return Unavailable(fmt::format("file {}: {}", Quote(temporary), std::strerror(errno)));
  file->temporary = temporary;
  file->stream = gzdopen(fd, "wb");
  if (file->stream == nullptr) {
    ::close(fd);
    return Unavailable(fmt::format("file {}: no memory to pack it", Quote(temporary)));
  }
  if (::fchmod(fd, 0600) != 0) {
    return Unavailable(fmt::format("file {}: {}", Quote(temporary), std::strerror(errno)));
  }
  writer->file_ = std::move(file);
  return writer;
}

Status ArchiveWriter::Write(std::string_view bytes) {
  if (bytes.empty()) return OkStatus();
  if (gzwrite(file_->stream, bytes.data(), static_cast<unsigned>(bytes.size())) > 0) {
    return OkStatus();
  }
  return Unavailable(fmt::format("file {}: {}", Quote(path_), std::strerror(errno)));
}

Status ArchiveWriter::Add(std::string_view name, std::string_view content) {
  const std::string whole = fmt::format("{}/{}", folder_, name);
  if (whole.size() > kNameMax || content.size() > kWriteMax) {
    return BadRequest(fmt::format("archive entry {}: a name has at most {} bytes, a content {}",
                                  Quote(whole),
                                  kNameMax,
                                  kWriteMax));
  }
  const Header header = HeaderOf(whole, content.size(), now_.seconds());
  TRY_STATUS(Write({header.bytes.data(), header.bytes.size()}));
  TRY_STATUS(Write(content));
  TRY_STATUS(Write(std::string((kBlock - content.size() % kBlock) % kBlock, '\0')));
  bytes_ += content.size();
  ++entries_;
  return OkStatus();
}

Status ArchiveWriter::Finish() {
  TRY_STATUS(Write(std::string(2 * kBlock, '\0')));
  const int closed = gzclose(std::exchange(file_->stream, nullptr));
  if (closed != Z_OK) return Unavailable(fmt::format("file {}: not written whole", Quote(path_)));
  if (::rename(file_->temporary.c_str(), path_.c_str()) != 0) {
    return Unavailable(fmt::format("file {}: {}", Quote(path_), std::strerror(errno)));
  }
  file_->temporary.clear();
  return OkStatus();
}

}  // namespace berth::cli
