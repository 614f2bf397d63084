// SPDX-License-Identifier: Apache-2.0
#include "app/migrate_job.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "app/backup/state_copy.h"
#include "app/leading/presence.h"
#include "app/server_in_use.h"
#include "app/store_place.h"
#include "base/strings.h"
#include "store/etcd/etcd_store.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

// Copies and compares. `base` is what `to` adds to its revisions.
rt::Task<Status> Copy(store::Store* from, store::Store* to, Migrated* migrated) {
  StateReader reader(*from);
  StateWriter writer(*to);
  while (true) {
    CO_TRY(std::vector<store::KeyValue> values, co_await reader.Next());
    if (values.empty()) break;
    for (store::KeyValue& item : values) {
      CO_TRY_STATUS(co_await writer.Add(std::move(item.key), std::move(item.value)));
    }
  }
  CO_TRY_STATUS(co_await writer.Flush());
  CO_TRY(const StateSum had, co_await SumState(*from));
  CO_TRY(const StateSum has, co_await SumState(*to));
  if (had != has) {
    co_return Internal("the copy has " + std::to_string(has.keys) + " values with SHA-256 " +
                       has.digest + ", the store " + std::to_string(had.keys) + " with " +
                       had.digest);
  }
  migrated->values = has.keys;
  CO_TRY(const store::Revision now, co_await to->CurrentRevision());
  co_return co_await to->Compact(now);
}

struct OpenEtcd {
  std::unique_ptr<store::EtcdStore> store;
  std::unique_ptr<store::Store> handle;
};
rt::Task<Status> Open(rt::AsioLoop* loop, store::EtcdOptions options, OpenEtcd* out) {
  CO_TRY(out->store, co_await store::EtcdStore::Open(*loop, std::move(options)));
  out->handle = out->store->NewHandle();
  co_return OkStatus();
}

struct OpenRocks {
  std::unique_ptr<store::RocksStore> store;
  std::unique_ptr<store::Store> handle;
};
Status Open(rt::AsioLoop& loop, std::string dir, OpenRocks& out) {
  store::RocksOptions options;
  options.dir = std::move(dir);
  TRY(out.store, store::RocksStore::Open(loop, std::move(options)));
  out.handle = out.store->NewHandle();
  return OkStatus();
}

rt::Task<Status> IntoEtcd(store::Store* from, store::Store* to, Migrated* migrated) {
  CO_TRY_STATUS(co_await CheckNobodyServesEmptied(*to));
  CO_TRY_STATUS(co_await BeginFilling(*to));
  CO_TRY(const store::Revision old, co_await from->CurrentRevision());
  CO_TRY(const store::Revision raw, co_await to->CurrentRevision());
  migrated->revision = std::max(old.value, raw.value);
  const std::string base = std::to_string(migrated->revision - raw.value);
  CO_TRY_STATUS(co_await PutMark(*to, kBaseKey, base));
  CO_TRY_STATUS(co_await Copy(from, to, migrated));
  co_return co_await EndFilling(*to);
}

rt::Task<Status> FromEmbedded(rt::AsioLoop* loop,
                              std::string store,
                              store::EtcdOptions to_options,
                              Migrated* migrated) {
  OpenEtcd to;
  CO_TRY_STATUS(co_await Open(loop, std::move(to_options), &to));
  OpenRocks from;
  Status done = Open(*loop, store, from);
  if (done.ok()) {
    done = co_await IntoEtcd(from.handle.get(), to.handle.get(), migrated);
    from.handle.reset();
    CO_TRY_STATUS(co_await from.store->Close());
  }
  to.handle.reset();
  CO_TRY_STATUS(co_await to.store->Close());
  CO_TRY_STATUS(done);
  CO_TRY(migrated->set_aside, SetAside(store, store, "migrated"));
  co_return OkStatus();
}

rt::Task<Status> IntoEmbedded(rt::AsioLoop* loop,
                              store::Store* from,
                              std::string store,
                              Migrated* migrated) {
  CO_TRY_STATUS(co_await CheckFilled(*from));
  CO_TRY_STATUS(co_await CheckNobodyServes(*from));
  CO_TRY(const int64_t base, co_await ReadRevisionBase(*from));
  CO_TRY(const store::Revision old, co_await from->CurrentRevision());
  migrated->revision = old.value + base;
  const std::string made = store + ".migrating";
  std::error_code error;
  fs::remove_all(made, error);
  OpenRocks to;
  CO_TRY_STATUS(Open(*loop, made, to));
  to.store->SkipRevisions(migrated->revision);
  const Status copied = co_await Copy(from, to.handle.get(), migrated);
  to.handle.reset();
  CO_TRY_STATUS(co_await to.store->Close());
  CO_TRY_STATUS(copied);
  co_return PutStoreInPlace(made, store).status();
}

rt::Task<Status> FromEtcd(rt::AsioLoop* loop,
                          store::EtcdOptions from_options,
                          std::string store,
                          std::string to_name,
                          Migrated* migrated) {
  if (fs::exists(store)) {
    co_return Conflict("there is a store in " + store + " already: move it away first");
  }
  OpenEtcd from;
  CO_TRY_STATUS(co_await Open(loop, std::move(from_options), &from));
  Status done = co_await IntoEmbedded(loop, from.handle.get(), store, migrated);
  if (done.ok()) done = co_await PutMark(*from.handle, kMovedKey, std::move(to_name));
  from.handle.reset();
  CO_TRY_STATUS(co_await from.store->Close());
  co_return done;
}

}  // namespace

rt::Task<Result<Migrated>> Migrate(rt::AsioLoop& loop,
                                   DataPlace from,
                                   DataPlace to,
                                   std::string to_name) {
  if (from.etcd.has_value() == to.etcd.has_value()) {
    co_return BadRequest("a migration goes from the embedded store to an etcd or back");
  }
  if (IsServerRunning(from.data_dir)) {
    co_return Conflict("a server runs on " + from.data_dir + ": stop it first");
  }
  const std::string store = from.data_dir + "/store";
  Migrated migrated;
  Status done;
  if (to.etcd.has_value()) {
    if (!fs::is_directory(store)) co_return NotFound("there is no store in " + store);
    done = co_await FromEmbedded(&loop, store, *std::move(to.etcd), &migrated);
  } else {
    done = co_await FromEtcd(&loop, *std::move(from.etcd), store, std::move(to_name), &migrated);
  }
  if (!done.ok()) co_return done.Wrap("migrate");
  CO_TRY_STATUS(SyncFolder(from.data_dir));
  co_return migrated;
}

}  // namespace berth::app
