// SPDX-License-Identifier: Apache-2.0
#include "app/restore.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/registry/cluster_identity.h"
#include "app/backup/restored_access.h"
#include "app/server_options.h"
#include "app/store_place.h"
#include "store/rocks/rocks_store.h"
#include "store/sealed/key_file.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

Status Failed(const std::string& path, const std::string& doing, const std::string& why) {
  return Unavailable("restore: " + doing + " " + path + ": " + why);
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

// What the copy is encrypted with is needed beside what was used since.
Status MergeKeys(const std::string& copied, const std::string& data_dir) {
  if (!fs::exists(copied)) return OkStatus();
  TRY(const auto keys, store::KeyFile::Open(copied, store::MissingKeys::kRefuse));
  return store::KeyFile::Merge(DefaultKeyFile(data_dir), keys->ring());
}

// The copy becomes a store of its own: a new incarnation, revisions that nobody has seen, no
// history before them, and nobody in it whose access was or may have been revoked.
rt::Task<Status> Become(rt::Loop* loop,
                        store::Store* store,
                        std::vector<pki::Revocation> revoked,
                        std::optional<client::ClusterIdentity> replaced,
                        Restored* restored) {
  CO_TRY_STATUS(co_await VoidTokens(*store));
  CO_TRY_STATUS(co_await EnterRevocations(*loop, *store, std::move(revoked)));
  CO_TRY(const auto identity,
         co_await apiserver::BeginIncarnation(*loop, *store, std::move(replaced)));
  store::RangeRequest now;
  now.start = "/";
  now.limit = 1;
  CO_TRY(const store::RangeResult page, co_await store->Range(std::move(now)));
  CO_TRY_STATUS(co_await store->Compact(page.revision));
  restored->incarnation = identity.incarnation;
  restored->revision = page.revision.value;
  co_return OkStatus();
}

rt::Task<Status> Begin(rt::Loop* loop,
                       std::string dir,
                       std::vector<pki::Revocation> revoked,
                       Before before,
                       Restored* restored) {
  store::RocksOptions options;
  options.dir = std::move(dir);
  CO_TRY(const auto rocks, store::RocksStore::Open(*loop, std::move(options)));
  auto handle = rocks->NewHandle();
  CO_TRY(const store::Revision copied, co_await handle->CurrentRevision());
  const int64_t behind = std::max<int64_t>(0, before.revision.value - copied.value);
  rocks->SkipRevisions(behind + kRevisionJump);
  const Status became =
      co_await Become(loop, handle.get(), std::move(revoked), std::move(before.identity), restored);
  handle.reset();
  CO_TRY_STATUS(co_await rocks->Close());
  co_return became;
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
  CO_TRY_STATUS(CheckNotInUse("restore", source));
  CO_TRY_STATUS(CheckNotInUse("restore", store));
  fs::create_directories(options.data_dir, error);
  if (error) co_return Failed(options.data_dir, "making", error.message());
  // On a new machine hosts and users know the cluster by its old authority.
  const std::string authority = options.data_dir + "/pki";
  if (!fs::exists(authority) && fs::is_directory(options.from + "/pki")) {
    CO_TRY_STATUS(Copy(options.from + "/pki", authority));
  }
  CO_TRY_STATUS(Copy(source, made));
  CO_TRY_STATUS(MergeKeys(options.from + "/pki/encryption-keys", options.data_dir));
  CO_TRY(Before before, co_await ReadBefore(&loop, store));
  Restored restored;
  CO_TRY_STATUS(co_await Begin(&loop, made, options.revoked, std::move(before), &restored));
  CO_TRY(restored.set_aside, PutStoreInPlace(made, store));
  CO_TRY_STATUS(SyncFolder(options.data_dir));
  co_return restored;
}

}  // namespace berth::app
