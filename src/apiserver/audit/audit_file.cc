// SPDX-License-Identifier: Apache-2.0
#include "apiserver/audit/audit_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace berth::apiserver {
namespace {

Status Failed(std::string_view doing, const std::string& path) {
  const int error = errno;
  return Unavailable(fmt::format("{} audit log {}: {}", doing, path, std::strerror(error)));
}

}  // namespace

Result<std::unique_ptr<AuditFile>> AuditFile::Open(Options options) {
  options.files_max = std::max<size_t>(options.files_max, 2);
  std::unique_ptr<AuditFile> file(new AuditFile(std::move(options)));
  TRY_STATUS(file->OpenCurrent());
  return file;
}

AuditFile::~AuditFile() {
  if (fd_ >= 0) close(fd_);
}

Status AuditFile::OpenCurrent() {
  const std::string& path = options_.path;
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd < 0) return Failed("open", path);
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  struct stat status{};
  if (fstat(fd_, &status) != 0) return Failed("look at", path);
  if (!S_ISREG(status.st_mode)) return Unavailable("audit log " + path + " is not a plain file");
  if ((status.st_mode & 0777) != 0600 && fchmod(fd_, 0600) != 0) {
    return Failed("close to others the", path);
  }
  size_ = static_cast<size_t>(status.st_size);
  in_line_ = false;
  char last = '\n';
  if (size_ > 0 && pread(fd_, &last, 1, status.st_size - 1) != 1) return Failed("read", path);
  if (last != '\n') return Append("\n").status;
  return OkStatus();
}

Status AuditFile::Rotate() {
  TRY_STATUS(Sync());
  auto name = [this](size_t number) {
    return number == 0 ? options_.path : options_.path + "." + std::to_string(number);
  };
  for (size_t number = options_.files_max - 1; number > 0; --number) {
    if (std::rename(name(number - 1).c_str(), name(number).c_str()) != 0 && errno != ENOENT) {
      return Failed("set aside", name(number - 1));
    }
  }
  return OpenCurrent();
}

AuditFile::Outcome AuditFile::Append(std::string_view lines) {
  Outcome outcome;
  if (!in_line_ && size_ > 0 && size_ + lines.size() > options_.file_bytes_max) {
    outcome.status = Rotate();
    if (!outcome.status.ok()) return outcome;
  }
  while (outcome.written < lines.size()) {
    const ssize_t count =
        write(fd_, lines.data() + outcome.written, lines.size() - outcome.written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      outcome.status = Failed("write", options_.path);
      break;
    }
    outcome.written += static_cast<size_t>(count);
  }
  size_ += outcome.written;
  if (outcome.written > 0) in_line_ = lines[outcome.written - 1] != '\n';
  return outcome;
}

Status AuditFile::Sync() {
  if (fdatasync(fd_) != 0) return Failed("sync", options_.path);
  return OkStatus();
}

}  // namespace berth::apiserver
