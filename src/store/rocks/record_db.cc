// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/record_db.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/strings.h"
#include "store/mvcc/history_page.h"
#include "store/rocks/meta_record.h"
#include "store/rocks/private_files.h"
#include "store/rocks/rocks_options.h"

namespace berth::store {
namespace {

constexpr std::string_view kMetaKey = "m";
constexpr char kLeasePrefix = 'l';
constexpr char kRecordPrefix = 'r';
constexpr std::string_view kBehindRecords = "s";

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }

std::string RecordKey(Position at) { return kRecordPrefix + EncodePosition(at); }

std::string LeaseKey(LeaseId id) {
  return kLeasePrefix + EncodePosition({.revision = {id.value}, .sub = 0}).substr(0, 8);
}

class ErrorListener final : public rocksdb::EventListener {
 public:
  ErrorListener(std::string dir, std::function<void(const Status&)> on_error)
      : dir_(std::move(dir)), on_error_(std::move(on_error)) {}
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* status) override {
    disk_was_full_ = status->IsNoSpace();
    on_error_(WriteError(dir_, *status));
  }
  // True if the last write that failed, of ours or of RocksDB itself, found the disk full.
  std::atomic<bool>& disk_was_full() { return disk_was_full_; }

 private:
  const std::string dir_;
  const std::function<void(const Status&)> on_error_;
  std::atomic<bool> disk_was_full_ = false;
};

class RocksRecordDb final : public RecordDb {
 public:
  RocksRecordDb(std::string dir,
                std::unique_ptr<rocksdb::Env> env,
                std::unique_ptr<rocksdb::DB> db,
                std::shared_ptr<ErrorListener> listener)
      : dir_(std::move(dir)),
        env_(std::move(env)),
        db_(std::move(db)),
        listener_(std::move(listener)) {}

  Status Describe(std::string new_store_id);
  const std::string& store_id() const override { return meta_.store_id; }
  Status Load(LogLoader& loader) override;
  Status Write(std::span<const std::shared_ptr<const LogWrite>> group) override;
  Result<std::optional<Record>> Read(Position at) override;
  Result<HistoryPage> ReadHistory(const HistoryRequest& request) override;
  Status Recover(Revision durable) override;
  void Flush() override;

 private:
  Status Decode(std::string_view key, std::string_view value, LogLoader& loader) const;
  Result<Record> DecodeAt(Position at, std::string_view bytes) const;
  void Add(const LogWrite& write, rocksdb::WriteBatch& batch);
  Status Commit(rocksdb::WriteBatch& batch, bool sync);
  bool IsEmpty();

  const std::string dir_;
  const std::unique_ptr<rocksdb::Env> env_;  // null if the caller brought one
  const std::unique_ptr<rocksdb::DB> db_;
  const std::shared_ptr<ErrorListener> listener_;
  MetaRecord meta_;  // changed by the writer only, once the log is open
};

bool RocksRecordDb::IsEmpty() {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
  it->SeekToFirst();
  return !it->Valid() && it->status().ok();
}

// Reads what the folder is, or writes it if the folder is new.
Status RocksRecordDb::Describe(std::string new_store_id) {
  std::string bytes;
  const rocksdb::Status read = db_->Get(rocksdb::ReadOptions(), ToSlice(kMetaKey), &bytes);
  if (read.ok()) {
    TRY(meta_, DecodeMeta(dir_, bytes));
    return OkStatus();
  }
  if (!read.IsNotFound()) return ReadError(dir_, read);
  if (!IsEmpty()) {
    return Internal(
        fmt::format("data folder {} holds a database that is not a store of this program", dir_));
  }
  meta_.store_id = std::move(new_store_id);
  rocksdb::WriteBatch batch;
  batch.Put(ToSlice(kMetaKey), EncodeMeta(meta_));
  return Commit(batch, /*sync=*/true);
}

Result<Record> RocksRecordDb::DecodeAt(Position at, std::string_view bytes) const {
  Result<Record> record = DecodeRecord(at, bytes);
  if (record.ok()) return record;
  return record.status().Wrap(
      fmt::format("data folder {}: revision {}, change {}", dir_, at.revision.value, at.sub));
}

Status RocksRecordDb::Decode(std::string_view key,
                             std::string_view value,
                             LogLoader& loader) const {
  if (key == kMetaKey) return OkStatus();
  if (key.size() == 9 && key.front() == kLeasePrefix) {
    const Position id = DecodePosition(std::string(key.substr(1)) + '\0');
    uint64_t ttl = 0;
    if (!TakeVarint(value, ttl) || !value.empty()) {
      return Internal(fmt::format("data folder {}: lease {} is damaged", dir_, id.revision.value));
    }
    loader.OnLease({.id = {id.revision.value}, .ttl = Duration::Nanos(static_cast<int64_t>(ttl))});
    return OkStatus();
  }
  if (key.size() == 1 + kPositionBytes && key.front() == kRecordPrefix) {
    TRY(Record record, DecodeAt(DecodePosition(key.substr(1)), value));
    loader.OnRecord(std::move(record));
    return OkStatus();
  }
  return Internal(fmt::format("data folder {}: unknown record {}", dir_, Quote(key)));
}

Status RocksRecordDb::Load(LogLoader& loader) {
  loader.OnCompacted(meta_.compacted);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 * 1024 * 1024;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    TRY_STATUS(Decode(it->key().ToStringView(), it->value().ToStringView(), loader));
  }
  return it->status().ok() ? OkStatus() : ReadError(dir_, it->status());
}

void RocksRecordDb::Add(const LogWrite& write, rocksdb::WriteBatch& batch) {
  for (const Record& record : write.records) {
    const std::string key = RecordKey(record.at);
    const EncodedRecord encoded = EncodeRecord(record);
    const rocksdb::Slice key_slice(key);
    const std::array<rocksdb::Slice, 3> value = {
        encoded.head, ToSlice(record.value.view()), encoded.tail};
    batch.Put(rocksdb::SliceParts(&key_slice, 1),
              rocksdb::SliceParts(value.data(), static_cast<int>(value.size())));
  }
  for (const LeaseGrant& lease : write.granted) {
    std::string ttl;
    PutVarint(ttl, static_cast<uint64_t>(lease.ttl.nanos()));
    batch.Put(LeaseKey(lease.id), ttl);
  }
  for (const LeaseId id : write.ended) batch.Delete(LeaseKey(id));
  if (write.compacted.has_value()) {
    meta_.compacted = std::max(meta_.compacted, *write.compacted);
    batch.Put(ToSlice(kMetaKey), EncodeMeta(meta_));
  }
  for (const Position at : write.erased) batch.Delete(RecordKey(at));
}

Status RocksRecordDb::Commit(rocksdb::WriteBatch& batch, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status written = db_->Write(options, &batch);
  if (written.ok()) return OkStatus();
  listener_->disk_was_full() = written.IsNoSpace();
  return WriteError(dir_, written);
}

Status RocksRecordDb::Write(std::span<const std::shared_ptr<const LogWrite>> group) {
  rocksdb::WriteBatch batch;
  bool sync = false;
  for (const auto& write : group) {
    Add(*write, batch);
    sync |= !write->lazy();
  }
  return Commit(batch, sync);
}

Result<std::optional<Record>> RocksRecordDb::Read(Position at) {
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status read =
      db_->Get(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), RecordKey(at), &bytes);
  if (read.IsNotFound()) return std::optional<Record>();
  if (!read.ok()) return ReadError(dir_, read);
  TRY(Record record, DecodeAt(at, bytes.ToStringView()));
  return std::optional<Record>(std::move(record));
}

Result<HistoryPage> RocksRecordDb::ReadHistory(const HistoryRequest& request) {
  HistoryPageBuilder page(request);
  const auto previous = [this](Position at) { return Read(at); };
  const rocksdb::Slice behind = ToSlice(kBehindRecords);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &behind;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek(RecordKey({.revision = request.from, .sub = 0})); it->Valid(); it->Next()) {
    const std::string_view key = it->key().ToStringView();
    if (key.size() != 1 + kPositionBytes) {
      return Internal(fmt::format("data folder {}: unknown record {}", dir_, Quote(key)));
    }
    const Position at = DecodePosition(key.substr(1));
    if (at.revision > request.through) break;
    if (!page.Accepts(at)) return page.Take();
    TRY(Record record, DecodeAt(at, it->value().ToStringView()));
    TRY_STATUS(page.Add(std::move(record), previous));
  }
  if (!it->status().ok()) return ReadError(dir_, it->status());
  page.ReachedEnd();
  return page.Take();
}

// Resume() writes the memtables, which hold acknowledged writes only, to files of their own and
// starts a new write-ahead log; the old one, whose end may be a torn write, is then obsolete. What
// it may have brought back behind `durable` is deleted in the same write that proves the disk
// works.
Status RocksRecordDb::Recover(Revision durable) {
  if (!listener_->disk_was_full()) {
    return Unavailable(fmt::format(
        "data folder {} stays read-only until a restart: the last failure was not a full disk",
        dir_));
  }
  const rocksdb::Status resumed = db_->Resume();
  if (!resumed.ok()) return WriteError(dir_, resumed);
  rocksdb::WriteBatch batch;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
  for (it->Seek(RecordKey({.revision = durable.Next(), .sub = 0})); it->Valid(); it->Next()) {
    batch.Delete(it->key());
  }
  if (!it->status().ok()) return ReadError(dir_, it->status());
  batch.Put(ToSlice(kMetaKey), EncodeMeta(meta_));
  return Commit(batch, /*sync=*/true);
}

void RocksRecordDb::Flush() { db_->Flush(rocksdb::FlushOptions()).PermitUncheckedError(); }

}  // namespace

Result<std::unique_ptr<RecordDb>> RecordDb::Open(
    const RocksOptions& options,
    std::string new_store_id,
    std::function<void(const Status&)> on_background_error) {
  TRY_STATUS(PrepareFolder(options));
  auto listener = std::make_shared<ErrorListener>(options.dir, std::move(on_background_error));
  rocksdb::Options rocks = MakeRocksOptions(options, listener);
  std::unique_ptr<rocksdb::Env> env = options.env == nullptr ? NewPrivateFilesEnv() : nullptr;
  if (env != nullptr) rocks.env = env.get();
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(rocks, options.dir, &raw);
  if (!opened.ok()) return OpenError(options.dir, opened);
  auto db = std::make_unique<RocksRecordDb>(
      options.dir, std::move(env), std::unique_ptr<rocksdb::DB>(raw), std::move(listener));
  TRY_STATUS(db->Describe(std::move(new_store_id)));
  return std::unique_ptr<RecordDb>(std::move(db));
}

}  // namespace berth::store
