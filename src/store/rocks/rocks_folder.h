// SPDX-License-Identifier: Apache-2.0
// A RocksFolder is a data folder with its database open. It knows how the database failed, and
// opens it anew after a full disk.
//
// Why not DB::Resume(): a flush that RocksDB had queued, but not begun, when an error came stays
// queued and is never run, and Resume() waits for it for ever. Opening anew is what a restart does.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

class RocksFolder {
 public:
  // `on_background_error` is called on any thread when RocksDB stops taking writes by itself.
  static Result<std::unique_ptr<RocksFolder>> Open(
      const RocksOptions& options, std::function<void(const Status&)> on_background_error);
  ~RocksFolder();

  // Fails only after a Reopen() that could not even open it for reading.
  Result<rocksdb::DB*> db() const;

  // Keeps in mind that a write failed, and says so in our words.
  Status Failed(const rocksdb::Status& write);
  // Ok if nothing but a full disk made writes fail.
  Status MayReopen() const;

  // Tries whether as much can be written as Reopen() needs, and leaves nothing behind.
  Status CheckRoom();
  // Closes the database and opens it again; what its log of writes held is in files of their own
  // then, so that nothing depends any more on how the log ended. If that fails it is open for
  // reading. REQUIRES: nobody uses db().
  Status Reopen();

 private:
  class Listener;
  RocksFolder(RocksOptions options, std::shared_ptr<Listener> listener);
  rocksdb::Status OpenDb();
  rocksdb::Status OpenForReading();
  rocksdb::Options MakeOptions();
  rocksdb::Env& env() const;

  const RocksOptions options_;
  const std::shared_ptr<Listener> listener_;
  const std::unique_ptr<rocksdb::Env> own_env_;  // null if the caller brought one
  std::unique_ptr<rocksdb::DB> db_;
  Status closed_;  // why, if db_ is null
};

}  // namespace berth::store
