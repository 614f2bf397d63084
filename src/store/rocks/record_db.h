// SPDX-License-Identifier: Apache-2.0
// A RecordDb is the log of a store in a RocksDB folder: synchronous, callable from any thread.
//
// One column family. Keys:
//   "m"                         magic, format version, compacted revision, store id, checksum
//   "l" lease id (8 bytes)      ttl in nanoseconds
//   "r" position (9 bytes)      record (mvcc/record.h)
// All numbers in keys are big endian, so that one scan meets records in the order of revisions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/mvcc/record_log.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

class RecordDb {
 public:
  // `new_store_id` is used if the folder is new. `on_background_error` is called on any thread when
  // RocksDB stops taking writes by itself.
  static Result<std::unique_ptr<RecordDb>> Open(
      const RocksOptions& options,
      std::string new_store_id,
      std::function<void(const Status&)> on_background_error);
  virtual ~RecordDb() = default;

  virtual const std::string& store_id() const = 0;
  virtual Status Load(LogLoader& loader) = 0;
  // All or nothing, in one batch; durable when it returns ok, unless all of it is lazy.
  virtual Status Write(std::span<const std::shared_ptr<const LogWrite>> group) = 0;
  virtual Result<std::optional<Record>> Read(Position at) = 0;
  virtual Result<HistoryPage> ReadHistory(const HistoryRequest& request) = 0;
  // After a failed Write: see RecordLog::Recover. On the thread that writes.
  virtual Status Recover(Revision durable) = 0;
  // Moves everything to its final files, so that the next start has no log to replay. Best effort.
  virtual void Flush() = 0;
};

}  // namespace berth::store
