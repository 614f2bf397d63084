// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/folder_shelf.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file_status.h"
#include "base/folders.h"
#include "base/log.h"
#include "base/strings.h"
#include "pki/private_file.h"

namespace berth::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecord = "record.json";
// Others may pass through, and see nothing.
constexpr mode_t kPassThrough = 0711;

Status MakeFolder(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return FileFailed("make folder", path);
  // Whatever the umask says.
  if (chmod(path.c_str(), mode) != 0) return FileFailed("set the mode of", path);
  return OkStatus();
}

// Names that could be ours: nothing else below the folder is touched.
bool IsId(std::string_view name) {
  constexpr size_t kIdMax = 64;
  if (name.empty() || name.size() > kIdMax) return false;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) return false;
  }
  return true;
}

int64_t TakenBy(const std::string& folder) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  int64_t taken = 0;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    struct stat status = {};
    if (lstat(file.path().c_str(), &status) == 0) taken += int64_t{status.st_blocks} * kBlock;
  }
  return taken;
}

// Plain files first and the record last: without it the folder is nobody's.
Status RemoveFolder(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(folder, failed)) files.push_back(file.path());
  if (failed == std::errc::no_such_file_or_directory) return OkStatus();
  if (failed) return Internal(fmt::format("read folder {}: {}", folder, failed.message()));
  const std::string record = folder + "/" + std::string(kRecord);
  for (const std::string& file : files) {
    if (file != record && unlink(file.c_str()) != 0 && errno != ENOENT) {
      return FileFailed("remove", file);
    }
  }
  TRY_STATUS(SyncFolder(folder));
  if (unlink(record.c_str()) != 0 && errno != ENOENT) return FileFailed("remove", record);
  if (rmdir(folder.c_str()) != 0 && errno != ENOENT) return FileFailed("remove", folder);
  return SyncFolder(fs::path(folder).parent_path().string());
}

Status PutRecord(const std::string& folder, const std::string& record) {
  const bool is_new = access(folder.c_str(), F_OK) != 0;
  if (is_new) TRY_STATUS(MakeFolder(folder, kPassThrough));
  const Status written = pki::WritePrivateFile(folder + "/" + std::string(kRecord), record);
  if (!written.ok()) {
    if (is_new) (void)RemoveFolder(folder);
    return AsFullDisk(written);
  }
  return is_new ? SyncFolder(fs::path(folder).parent_path().string()) : OkStatus();
}

Result<std::vector<ShelfItem>> LoadKind(const std::string& folder, ShelfKind kind) {
  std::vector<ShelfItem> items;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string id = entry.path().filename().string();
    if (!IsId(id)) {
      LOG_WARNING("{} is not ours and stays", entry.path().string());
      continue;
    }
    const std::string path = entry.path().string();
    Result<std::string> record = pki::ReadPrivateFile(path + "/" + std::string(kRecord));
    if (record.status().Is(Reason::kNotFound)) {
      LOG_INFO("{} has no record: removed", path);
      TRY_STATUS(RemoveFolder(path));
      continue;
    }
    if (!record.ok()) return record.status();
    items.push_back({.kind = kind, .id = id, .record = *std::move(record)});
  }
  if (failed) return Internal(fmt::format("read folder {}: {}", folder, failed.message()));
  return items;
}

// libvirt gives a disk to QEMU's user while that writes it. It takes it back at the end, unless it
// was killed meanwhile. Whose the folder is, not who we are: an export of NFS may know root by
// another name.
Status TakeBack(const std::string& part) {
  const std::string folder = fs::path(part).parent_path().string();
  struct stat ours = {};
  struct stat seen = {};
  if (lstat(folder.c_str(), &ours) != 0) return FileFailed("look at", folder);
  if (lstat(part.c_str(), &seen) != 0) return FileFailed("look at", part);
  if (seen.st_uid == ours.st_uid) return OkStatus();
  if (lchown(part.c_str(), ours.st_uid, ours.st_gid) == 0) return OkStatus();
  return FileFailed("take back", part);
}

Status SettleFile(const std::string& part, const std::string& disk) {
  TRY_STATUS(TakeBack(part));
  TRY_STATUS(SyncFile(part));
  if (chmod(part.c_str(), S_IRUSR | S_IWUSR) != 0) return FileFailed("set the mode of", part);
  if (rename(part.c_str(), disk.c_str()) != 0) return FileFailed("put in place", disk);
  return SyncFolder(fs::path(disk).parent_path().string());
}

Result<DiskPresence> PrepareFile(const std::string& part, const std::string& disk) {
  if (unlink(part.c_str()) != 0 && errno != ENOENT) return FileFailed("remove", part);
  struct stat status = {};
  if (lstat(disk.c_str(), &status) == 0) return DiskPresence::kWhole;
  if (errno != ENOENT) return FileFailed("look at", disk);
  return DiskPresence::kAbsent;
}

}  // namespace

FolderShelf::FolderShelf(std::string folder, int lock, rt::BlockingPool& pool)
    : folder_(std::move(folder)), lock_(lock), pool_(pool) {}

FolderShelf::~FolderShelf() { close(lock_); }

Result<std::unique_ptr<FolderShelf>> FolderShelf::Open(std::string folder, rt::BlockingPool& pool) {
  if (!folder.starts_with('/')) {
    return BadRequest("folder " + Quote(folder) + ": expected an absolute path");
  }
  TRY_STATUS(MakeOpenFolders(folder));
  TRY_STATUS(MakeFolder(folder, kPassThrough));
  const std::string path = folder + "/lock";
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return FileFailed("open", path);
  auto shelf = std::unique_ptr<FolderShelf>(new FolderShelf(std::move(folder), lock, pool));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Conflict("another volume runtime uses folder " + shelf->folder_);
    }
    return FileFailed("lock", path);
  }
  TRY_STATUS(MakeFolder(shelf->FolderOf(ShelfKind::kVolume), kPassThrough));
  TRY_STATUS(MakeFolder(shelf->FolderOf(ShelfKind::kSnapshot), kPassThrough));
  TRY_STATUS(SyncFolder(shelf->folder_));
  return shelf;
}

std::string FolderShelf::FolderOf(ShelfKind kind) const {
  return folder_ + (kind == ShelfKind::kVolume ? "/volumes" : "/snapshots");
}
std::string FolderShelf::FolderOf(ShelfKind kind, std::string_view id) const {
  return FolderOf(kind) + "/" + std::string(id);
}
DiskFile FolderShelf::PartOf(ShelfKind kind, std::string_view id, DiskFormat format) const {
  return {.path = FolderOf(kind, id) + "/part." + std::string(DiskFormatName(format)),
          .format = format};
}
DiskFile FolderShelf::DiskOf(ShelfKind kind, std::string_view id, DiskFormat format) const {
  return {.path = FolderOf(kind, id) + "/disk." + std::string(DiskFormatName(format)),
          .format = format};
}

rt::Task<Result<std::vector<ShelfItem>>> FolderShelf::Load() {
  const auto job = [this]() -> Result<std::vector<ShelfItem>> {
    TRY(auto items, LoadKind(FolderOf(ShelfKind::kVolume), ShelfKind::kVolume));
    TRY(auto snapshots, LoadKind(FolderOf(ShelfKind::kSnapshot), ShelfKind::kSnapshot));
    for (ShelfItem& item : snapshots) items.push_back(std::move(item));
    return items;
  };
  co_return co_await pool_.Run("shelf.load", job);
}

rt::Task<Status> FolderShelf::Put(ShelfKind kind, std::string id, std::string record) {
  const auto job = [this, kind, &id, &record] { return PutRecord(FolderOf(kind, id), record); };
  co_return co_await pool_.Run("shelf.put", job);
}

rt::Task<Result<DiskPresence>> FolderShelf::Prepare(ShelfKind kind,
                                                    std::string id,
                                                    DiskFormat format) {
  const auto job = [this, kind, &id, format] {
    return PrepareFile(PartOf(kind, id, format).path, DiskOf(kind, id, format).path);
  };
  co_return co_await pool_.Run("shelf.prepare", job);
}

rt::Task<Status> FolderShelf::Settle(ShelfKind kind, std::string id, DiskFormat format) {
  const auto job = [this, kind, &id, format] {
    return SettleFile(PartOf(kind, id, format).path, DiskOf(kind, id, format).path);
  };
  co_return co_await pool_.Run("shelf.settle", job);
}

rt::Task<Status> FolderShelf::Remove(ShelfKind kind, std::string id) {
  const auto job = [this, kind, &id] { return RemoveFolder(FolderOf(kind, id)); };
  co_return co_await pool_.Run("shelf.remove", job);
}

rt::Task<Result<ShelfRoom>> FolderShelf::Room() {
  const auto job = [this]() -> Result<ShelfRoom> {
    struct statvfs status = {};
    if (statvfs(folder_.c_str(), &status) != 0) return FileFailed("measure", folder_);
    ShelfRoom room;
    const auto block = static_cast<int64_t>(status.f_frsize);
    room.total = static_cast<int64_t>(status.f_blocks) * block;
    room.available = static_cast<int64_t>(status.f_bavail) * block;
    for (const ShelfKind kind : {ShelfKind::kVolume, ShelfKind::kSnapshot}) {
      std::error_code failed;
      for (const auto& entry : fs::directory_iterator(FolderOf(kind), failed)) {
        room.taken[{kind, entry.path().filename().string()}] = TakenBy(entry.path().string());
      }
      if (failed) return Internal(fmt::format("read {}: {}", FolderOf(kind), failed.message()));
    }
    return room;
  };
  co_return co_await pool_.Run("shelf.room", job);
}

}  // namespace berth::runtime
