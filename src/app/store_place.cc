// SPDX-License-Identifier: Apache-2.0
#include "app/store_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "apiserver/registry/cluster_identity.h"
#include "app/server_in_use.h"
#include "base/log.h"
#include "net/owned_fd.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

Status Failed(const std::string& path, const std::string& doing) {
  return Unavailable(doing + " " + path + ": " + std::strerror(errno));
}

rt::Task<Result<Before>> Read(rt::Loop* loop, std::string dir) {
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

}  // namespace

Status CheckNotInUse(const std::string& doing, const std::string& store) {
  if (!IsStoreInUse(store)) return OkStatus();
  return Conflict(doing + ": a server uses " + store + ": stop it first");
}

rt::Task<Result<Before>> ReadBefore(rt::Loop* loop, std::string store) {
  std::error_code error;
  if (!fs::is_directory(store, error)) co_return Before();
  Result<Before> read = co_await Read(loop, store);
  if (read.ok()) co_return *std::move(read);
  LOG_WARNING("restore: {} cannot be read, its incarnation is not counted: {}",
              store,
              read.status().ToString());
  co_return Before();
}

Result<std::string> SetAside(const std::string& path,
                             const std::string& store,
                             const std::string& word) {
  std::string aside;
  for (int number = 1;; ++number) {
    aside = store + "." + word + "-" + std::to_string(number);
    if (!fs::exists(aside)) break;
  }
  if (std::rename(path.c_str(), aside.c_str()) != 0) return Failed(path, "setting aside");
  return aside;
}

Result<std::string> PutStoreInPlace(const std::string& made, const std::string& store) {
  if (!fs::exists(store)) {
    if (std::rename(made.c_str(), store.c_str()) == 0) return std::string();
    return Failed(store, "putting in place");
  }
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, store.c_str(), RENAME_EXCHANGE) != 0) {
    return Failed(store, "exchanging");
  }
  return SetAside(made, store, "before-restore");
}

Status SyncFolder(const std::string& path) {
  const net::OwnedFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return Failed(path, "opening");
  return fsync(folder.get()) == 0 ? OkStatus() : Failed(path, "syncing");
}

}  // namespace berth::app
