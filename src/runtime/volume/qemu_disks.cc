// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/qemu_disks.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "base/file_status.h"
#include "base/strings.h"
#include "meta/json.h"
#include "runtime/volume/qcow2_header.h"

namespace berth::runtime {
namespace {

// Seconds of computing for a key, on a host that has better things to do.
constexpr Duration kShortLimit = Duration::Minutes(10);
// Tables of qcow2 and the header of LUKS: an eighth of a percent, and some.
constexpr int64_t kOverheadBytes = int64_t{64} << 20;
constexpr int64_t kOverheadPart = 512;
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr size_t kErrorBytesMax = 400;

const std::string kKeyObject = "secret,id=key,file=/dev/fd/3";

int64_t FileBytesMax(int64_t disk_bytes) {
  return disk_bytes + disk_bytes / kOverheadPart + kOverheadBytes;
}

bool Says(std::string_view errors, std::string_view words) {
  return errors.find(words) != std::string_view::npos;
}

Status Failure(const rt::ProcessEnd& end, std::string_view doing) {
  std::string text = Printable(Trim(end.errors).substr(0, kErrorBytesMax));
  if (end.signal == SIGXFSZ) {
    return BadRequest(fmt::format("{}: it grows beyond its limit", doing));
  }
  if (text.empty()) {
    text = end.signal != 0 ? fmt::format("signal {}", end.signal)
                           : fmt::format("exit status {}", end.exit_code);
  }
  const Status failed = Internal(fmt::format("{}: {}", doing, text));
  if (Says(end.errors, "\" lock")) {
    return Conflict(fmt::format("{}: the disk is in use by a guest", doing));
  }
  if (Says(end.errors, "Invalid password")) {
    return Forbidden(fmt::format("{}: the key does not open the disk", doing));
  }
  // qemu-img turns a signal for too large files into an error.
  if (Says(end.errors, "File too large")) {
    return BadRequest(fmt::format("{}: it grows beyond its limit", doing));
  }
  return AsFullDisk(failed);
}

// Commas separate options of QEMU and are written twice inside a value.
std::string InOption(std::string_view value) {
  std::string text;
  for (const char c : value) {
    text += c;
    if (c == ',') text += c;
  }
  return text;
}

std::string Name(DiskFormat format) { return std::string(DiskFormatName(format)); }

Result<std::string> ReadHead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return FileFailed("open", path);
  std::string head(kQcow2HeaderBytes, '\0');
  const ssize_t count = pread(fd, head.data(), head.size(), 0);
  const int error = errno;
  close(fd);
  if (count < 0) {
    errno = error;
    return FileFailed("read", path);
  }
  head.resize(static_cast<size_t>(count));
  return head;
}

Result<int64_t> FileBytes(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return FileFailed("look at", path);
  if (!S_ISREG(status.st_mode)) return BadRequest(path + " is not a plain file");
  return static_cast<int64_t>(status.st_size);
}

// Never shrinks, also if somebody else grows the file meanwhile.
Status ExtendFile(const std::string& path, int64_t bytes) {
  TRY(const int64_t has, FileBytes(path));
  if (has >= bytes) return OkStatus();
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return FileFailed("open", path);
  Status status;
  if (fallocate(fd, 0, bytes - 1, 1) != 0) {
    const bool unsupported = errno == EOPNOTSUPP;
    if (!unsupported || ftruncate(fd, bytes) != 0) status = FileFailed("grow", path);
  }
  if (status.ok() && fsync(fd) != 0) status = FileFailed("sync", path);
  close(fd);
  return status;
}

}  // namespace

struct QemuDisks::Call {
  std::string doing;
  std::vector<std::string> words;
  std::string key = {};  // not empty: the object "key" in the words
  Duration limit = kShortLimit;
  int64_t file_bytes_max = 0;
  rt::ProcessReach reach = {};
};

rt::Task<Result<std::string>> QemuDisks::Run(Call call) {
  rt::ProcessRequest request;
  request.argv = {options_.qemu_img};
  for (std::string& word : call.words) request.argv.push_back(std::move(word));
  if (!call.key.empty()) request.secrets = {std::move(call.key)};
  request.limit = call.limit;
  request.file_bytes_max = call.file_bytes_max;
  request.memory_bytes_max = kMemoryBytes;
  request.reach = std::move(call.reach);
  Result<rt::ProcessEnd> end = co_await processes_.Run(std::move(request));
  if (!end.ok()) co_return end.status().Wrap(call.doing);
  if (!end->ok()) co_return Failure(*end, call.doing);
  co_return std::move(end->output);
}

rt::Task<Result<std::string>> QemuDisks::Version() {
  Call call;
  call.doing = "look for qemu-img";
  call.words = {"--version"};
  CO_TRY(const std::string output, co_await Run(std::move(call)));
  co_return Printable(output.substr(0, output.find_first_of("(\n")));
}

rt::Task<Status> QemuDisks::Create(DiskFile target, int64_t bytes, std::string key) {
  Call call;
  call.doing = "make disk " + target.path;
  call.words = {"create", "-q", "-f", Name(target.format)};
  if (target.format == DiskFormat::kLuks) {
    call.words.insert(
        call.words.end(),
        {"--object",
         kKeyObject,
         "-o",
         fmt::format("key-secret=key,iter-time={}", options_.key_hardening.millis())});
    call.key = std::move(key);
  }
  call.words.insert(call.words.end(), {target.path, std::to_string(bytes)});
  call.reach.writes = {target.path};
  call.file_bytes_max = FileBytesMax(bytes);
  CO_TRY_STATUS(co_await Run(std::move(call)));
  co_return OkStatus();
}

rt::Task<Status> QemuDisks::Copy(DiskCopy copy) {
  const bool is_luks_copy = copy.source.format == DiskFormat::kLuks;
  if (is_luks_copy != (copy.target.format == DiskFormat::kLuks && copy.key.empty())) {
    co_return BadRequest("copy " + copy.source.path + ": encryption is neither kept nor made");
  }
  CO_TRY(const int64_t bytes, co_await VirtualBytes(copy.source));
  if (bytes > copy.bytes) {
    co_return BadRequest(fmt::format(
        "copy {}: a disk of {} bytes, at most {}", copy.source.path, bytes, copy.bytes));
  }
  Call call;
  call.doing = "copy " + copy.source.path;
  // An encrypted disk is copied as the bytes that it is.
  const std::string from = is_luks_copy ? "raw" : Name(copy.source.format);
  const std::string to = is_luks_copy ? "raw" : Name(copy.target.format);
  call.words = {"convert", "-q", "-f", from, "-O", to};
  if (!is_luks_copy && copy.target.format == DiskFormat::kLuks) {
    call.words.insert(
        call.words.end(),
        {"--object",
         kKeyObject,
         "-o",
         fmt::format("key-secret=key,iter-time={}", options_.key_hardening.millis())});
    call.key = std::move(copy.key);
  }
  call.words.insert(call.words.end(), {copy.source.path, copy.target.path});
  call.reach = {.reads = {copy.source.path}, .writes = {copy.target.path}};
  call.limit = options_.copy_limit;
  call.file_bytes_max = FileBytesMax(copy.bytes);
  CO_TRY_STATUS(co_await Run(std::move(call)));
  co_return OkStatus();
}

rt::Task<Result<int64_t>> QemuDisks::VirtualBytes(DiskFile disk) {
  if (disk.format == DiskFormat::kRaw) {
    const auto job = [&disk] { return FileBytes(disk.path); };
    co_return co_await pool_.Run("disks.size", job);
  }
  Call call;
  call.doing = "look at disk " + disk.path;
  call.words = {"info", "-U", "--output=json", "-f", Name(disk.format), disk.path};
  call.reach.reads = {disk.path};
  CO_TRY(const std::string output, co_await Run(std::move(call)));
  const Result<meta::Value> facts = meta::ParseJson(output);
  const meta::Value* const size = facts.ok() ? facts->Find("virtual-size") : nullptr;
  if (size == nullptr || !size->is_int()) {
    co_return Internal("look at disk " + disk.path + ": qemu-img does not tell its size");
  }
  co_return size->as_int();
}

rt::Task<Result<int64_t>> QemuDisks::ForeignVirtualBytes(DiskFile disk) {
  const auto job = [&disk]() -> Result<int64_t> {
    TRY(const int64_t file_bytes, FileBytes(disk.path));
    if (disk.format == DiskFormat::kRaw) return file_bytes;
    if (disk.format != DiskFormat::kQcow2) return BadRequest("an image is qcow2 or raw");
    TRY(const std::string head, ReadHead(disk.path));
    return Qcow2VirtualBytes(head);
  };
  co_return co_await pool_.Run("disks.look", job);
}

// The disk of a raw file is as long as the file; that of LUKS begins behind its header.
rt::Task<Result<Growth>> QemuDisks::GrowFile(DiskFile disk, int64_t bytes) {
  CO_TRY(const int64_t has, co_await VirtualBytes(disk));
  if (has >= bytes) co_return Growth::kDone;
  const auto job = [&disk, has, bytes]() -> Status {
    TRY(const int64_t file_bytes, FileBytes(disk.path));
    return ExtendFile(disk.path, std::max<int64_t>(file_bytes - has, 0) + bytes);
  };
  CO_TRY_STATUS(co_await pool_.Run("disks.grow", job));
  co_return Growth::kDone;
}

rt::Task<Result<Growth>> QemuDisks::Grow(DiskFile disk, int64_t bytes) {
  if (disk.format != DiskFormat::kQcow2) co_return co_await GrowFile(disk, bytes);
  CO_TRY(const int64_t has, co_await VirtualBytes(disk));
  if (has >= bytes) co_return Growth::kDone;
  Call call;
  call.doing = "grow disk " + disk.path;
  call.words = {"resize", "-q", "-f", Name(disk.format), disk.path, std::to_string(bytes)};
  call.reach.writes = {disk.path};
  const Result<std::string> grown = co_await Run(std::move(call));
  if (grown.status().Is(Reason::kConflict)) co_return Growth::kInUse;
  if (!grown.ok()) co_return grown.status();
  const auto job = [&disk] { return SyncFile(disk.path); };
  CO_TRY_STATUS(co_await pool_.Run("disks.sync", job));
  co_return Growth::kDone;
}

rt::Task<Status> QemuDisks::Unlock(DiskFile disk, std::string key) {
  Call call;
  call.doing = "unlock disk " + disk.path;
  // `info` looks at the header only; this one opens the disk for reading.
  call.words = {"measure", "-U", "-O", "raw", "--object", kKeyObject, "--image-opts"};
  call.words.push_back("driver=luks,key-secret=key,file.driver=file,file.filename=" +
                       InOption(disk.path));
  call.reach.reads = {disk.path};
  call.key = std::move(key);
  CO_TRY_STATUS(co_await Run(std::move(call)));
  co_return OkStatus();
}

}  // namespace berth::runtime
