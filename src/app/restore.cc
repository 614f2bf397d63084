// SPDX-License-Identifier: Apache-2.0
#include "app/restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "apiserver/registry/cluster_identity.h"
#include "base/log.h"
#include "client/cluster.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

// No watcher remembers a revision this far ahead of the copy (PROTOCOL 4.4).
constexpr int64_t kRevisionJump = 1'000'000'000;

Status Failed(const std::string& path, const std::string& doing, const std::string& why) {
  return Unavailable("restore: " + doing + " " + path + ": " + why);
}

// RocksDB holds a lock on this file as long as a process has the store open.
Status CheckNotInUse(const std::string& store) {
  const std::string path = store + "/LOCK";
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return OkStatus();
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const int asked = fcntl(file, F_GETLK, &lock);
  close(file);
  if (asked == 0 && lock.l_type != F_UNLCK) {
    return Conflict("restore: a server uses " + store + ": stop it first");
  }
  return OkStatus();
}

Status Copy(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::remove_all(to, error);
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) return Failed(from, "copying", error.message());
  fs::remove(to + "/LOCK", error);
  if (chmod(to.c_str(), 0700) != 0) return Failed(to, "closing to others", std::strerror(errno));
  return OkStatus();
}

Status SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Failed(path, "opening", std::strerror(errno));
  const int synced = fsync(folder);
  close(folder);
  return synced == 0 ? OkStatus() : Failed(path, "syncing", std::strerror(errno));
}

// How far the store was whose place is taken. The copy may be older than an earlier restore, whose
// numbers must not come twice.
struct Before {
  std::optional<client::ClusterIdentity> identity;
  store::Revision revision;
};

rt::Task<Result<Before>> ReadBefore(rt::Loop* loop, std::string dir) {
  store::RocksOptions options;
  options.dir = std::move(dir);
  CO_TRY(const auto rocks, store::RocksStore::Open(*loop, std::move(options)));
  auto handle = rocks->NewHandle();
  Before before;
  CO_TRY(before.identity, co_await apiserver::ReadIdentity(*handle));
  CO_TRY(before.revision, co_await handle->CurrentRevision());
  handle.reset();
  CO_TRY_STATUS(co_await rocks->Close());
  co_return before;
}

// The copy becomes a store of its own: a new incarnation, revisions that nobody has seen, and no
// history before them.
rt::Task<Status> Begin(rt::Loop* loop, std::string dir, Before before, Restored* restored) {
  store::RocksOptions options;
  options.dir = std::move(dir);
  CO_TRY(const auto rocks, store::RocksStore::Open(*loop, std::move(options)));
  auto handle = rocks->NewHandle();
  CO_TRY(const store::Revision copied, co_await handle->CurrentRevision());
  const int64_t behind = std::max<int64_t>(0, before.revision.value - copied.value);
  rocks->SkipRevisions(behind + kRevisionJump);
  CO_TRY(const auto identity,
         co_await apiserver::BeginIncarnation(*loop, *handle, std::move(before.identity)));
  store::RangeRequest now;
  now.start = "/";
  now.limit = 1;
  CO_TRY(const store::RangeResult page, co_await handle->Range(std::move(now)));
  CO_TRY_STATUS(co_await handle->Compact(page.revision));
  restored->incarnation = identity.incarnation;
  restored->revision = page.revision.value;
  handle.reset();
  co_return co_await rocks->Close();
}

// Exchanges the two in one step, so that there is a store at every moment: a server that finds none
// begins an empty one.
Status PutInPlace(const std::string& made, const std::string& store, Restored& restored) {
  if (!fs::exists(store)) {
    if (std::rename(made.c_str(), store.c_str()) == 0) return OkStatus();
    return Failed(store, "putting in place", std::strerror(errno));
  }
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, store.c_str(), RENAME_EXCHANGE) != 0) {
    return Failed(store, "exchanging", std::strerror(errno));
  }
  for (int number = 1;; ++number) {
    restored.set_aside = store + ".before-restore-" + std::to_string(number);
    if (!fs::exists(restored.set_aside)) break;
  }
  if (std::rename(made.c_str(), restored.set_aside.c_str()) != 0) {
    return Failed(made, "setting aside", std::strerror(errno));
  }
  return OkStatus();
}

}  // namespace

rt::Task<Result<Restored>> Restore(rt::Loop& loop, RestoreOptions options) {
  const std::string source = options.from + "/store";
  const std::string store = options.data_dir + "/store";
  const std::string made = store + ".restoring";
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    co_return NotFound("restore: " + options.from +
                       " is no copy of a data folder: it has no folder \"store\"");
  }
  if (fs::equivalent(source, store, error)) {
    co_return BadRequest("restore: " + options.from + " is the data folder itself");
  }
  CO_TRY_STATUS(CheckNotInUse(source));
  CO_TRY_STATUS(CheckNotInUse(store));
  fs::create_directories(options.data_dir, error);
  if (error) co_return Failed(options.data_dir, "making", error.message());
  // On a new machine hosts and users know the cluster by its old authority.
  const std::string authority = options.data_dir + "/pki";
  if (!fs::exists(authority) && fs::is_directory(options.from + "/pki")) {
    CO_TRY_STATUS(Copy(options.from + "/pki", authority));
  }
  CO_TRY_STATUS(Copy(source, made));
  Before before;
  if (fs::is_directory(store, error)) {
    // A store that cannot be read is the reason for many a restore.
    Result<Before> read = co_await ReadBefore(&loop, store);
    if (read.ok()) {
      before = *std::move(read);
    } else {
      LOG_WARNING("restore: {} cannot be read, its incarnation is not counted: {}",
                  store,
                  read.status().ToString());
    }
  }
  Restored restored;
  CO_TRY_STATUS(co_await Begin(&loop, made, std::move(before), &restored));
  CO_TRY_STATUS(PutInPlace(made, store, restored));
  CO_TRY_STATUS(SyncFolder(options.data_dir));
  co_return restored;
}

}  // namespace berth::app
