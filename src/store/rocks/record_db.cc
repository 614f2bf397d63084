// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/record_db.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"
#include "store/mvcc/history_page.h"
#include "store/rocks/meta_record.h"
#include "store/rocks/rocks_folder.h"
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

bool IsEmpty(rocksdb::DB& db) {
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(rocksdb::ReadOptions()));
  it->SeekToFirst();
  return !it->Valid() && it->status().ok();
}

// As they are stored: key and value.
using Leases = std::map<std::string, std::string>;

rocksdb::Status ReadLeases(rocksdb::DB& db, Leases& leases) {
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(rocksdb::ReadOptions()));
  for (it->Seek(rocksdb::Slice(&kLeasePrefix, 1));
       it->Valid() && it->key().ToStringView().front() == kLeasePrefix;
       it->Next()) {
    leases.emplace(it->key().ToStringView(), it->value().ToStringView());
  }
  return it->status();
}

class RocksRecordDb final : public RecordDb {
 public:
  RocksRecordDb(std::string dir, std::unique_ptr<RocksFolder> folder)
      : dir_(std::move(dir)), folder_(std::move(folder)) {}

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
  Result<std::optional<Record>> ReadOne(rocksdb::DB& db, Position at) const;
  Status Reopen();
  Status ForgetBehind(Revision durable, rocksdb::DB& db, rocksdb::WriteBatch& batch) const;
  Status RestoreLeases(rocksdb::DB& db, rocksdb::WriteBatch& batch) const;

  const std::string dir_;
  const std::unique_ptr<RocksFolder> folder_;
  // Held by a read, and by the writer while it opens the folder anew.
  Mutex reading_;
  // These are changed by the writer only, once the log is open.
  MetaRecord meta_;
  std::optional<Leases> leases_;  // those acknowledged, while a recovery has not succeeded
};

// Reads what the folder is, or writes it if the folder is new.
Status RocksRecordDb::Describe(std::string new_store_id) {
  TRY(rocksdb::DB* const db, folder_->db());
  std::string bytes;
  const rocksdb::Status read = db->Get(rocksdb::ReadOptions(), ToSlice(kMetaKey), &bytes);
  if (read.ok()) {
    TRY(meta_, DecodeMeta(dir_, bytes));
    return OkStatus();
  }
  if (!read.IsNotFound()) return ReadError(dir_, read);
  if (!IsEmpty(*db)) {
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
  TRY(rocksdb::DB* const db, folder_->db());
  loader.OnCompacted(meta_.compacted);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 * 1024 * 1024;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
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
  TRY(rocksdb::DB* const db, folder_->db());
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status written = db->Write(options, &batch);
  return written.ok() ? OkStatus() : folder_->Failed(written);
}

Status RocksRecordDb::Write(std::span<const std::shared_ptr<const LogWrite>> group) {
  const MetaRecord meta_before = meta_;
  rocksdb::WriteBatch batch;
  bool sync = false;
  for (const auto& write : group) {
    Add(*write, batch);
    sync |= !write->lazy();
  }
  Status written = Commit(batch, sync);
  if (!written.ok()) meta_ = meta_before;
  return written;
}

Result<std::optional<Record>> RocksRecordDb::Read(Position at) {
  MutexLock lock(reading_);
  TRY(rocksdb::DB* const db, folder_->db());
  return ReadOne(*db, at);
}

Result<std::optional<Record>> RocksRecordDb::ReadOne(rocksdb::DB& db, Position at) const {
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status read =
      db.Get(rocksdb::ReadOptions(), db.DefaultColumnFamily(), RecordKey(at), &bytes);
  if (read.IsNotFound()) return std::optional<Record>();
  if (!read.ok()) return ReadError(dir_, read);
  TRY(Record record, DecodeAt(at, bytes.ToStringView()));
  return std::optional<Record>(std::move(record));
}

Result<HistoryPage> RocksRecordDb::ReadHistory(const HistoryRequest& request) {
  MutexLock lock(reading_);
  TRY(rocksdb::DB* const db, folder_->db());
  HistoryPageBuilder page(request);
  const auto previous = [this, db](Position at) { return ReadOne(*db, at); };
  const rocksdb::Slice behind = ToSlice(kBehindRecords);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &behind;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
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

// A failed write may lie in RocksDB's log of writes, whole or torn. As long as the database stays
// open it does not read that log, and shows what was acknowledged; once it is open anew it may show
// the failed write too.
Status RocksRecordDb::Reopen() {
  TRY_STATUS(folder_->MayReopen());
  TRY_STATUS(folder_->CheckRoom());
  if (!leases_.has_value()) {
    TRY(rocksdb::DB* const db, folder_->db());
    Leases leases;
    const rocksdb::Status read = ReadLeases(*db, leases);
    if (!read.ok()) return ReadError(dir_, read);
    leases_ = std::move(leases);
  }
  MutexLock lock(reading_);
  return folder_->Reopen();
}

Status RocksRecordDb::ForgetBehind(Revision durable,
                                   rocksdb::DB& db,
                                   rocksdb::WriteBatch& batch) const {
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(rocksdb::ReadOptions()));
  for (it->Seek(RecordKey({.revision = durable.Next(), .sub = 0})); it->Valid(); it->Next()) {
    batch.Delete(it->key());
  }
  return it->status().ok() ? OkStatus() : ReadError(dir_, it->status());
}

// A key whose lease is not there would never go.
Status RocksRecordDb::RestoreLeases(rocksdb::DB& db, rocksdb::WriteBatch& batch) const {
  Leases stored;
  const rocksdb::Status read = ReadLeases(db, stored);
  if (!read.ok()) return ReadError(dir_, read);
  for (const auto& [key, value] : stored) {
    if (!leases_->contains(key)) batch.Delete(key);
  }
  for (const auto& [key, value] : *leases_) {
    if (!stored.contains(key)) batch.Put(key, value);
  }
  return OkStatus();
}

// The write that undoes a failed one is also the one that proves that the disk works.
Status RocksRecordDb::Recover(Revision durable) {
  TRY_STATUS(Reopen());
  TRY(rocksdb::DB* const db, folder_->db());
  rocksdb::WriteBatch batch;
  TRY_STATUS(ForgetBehind(durable, *db, batch));
  TRY_STATUS(RestoreLeases(*db, batch));
  batch.Put(ToSlice(kMetaKey), EncodeMeta(meta_));
  TRY_STATUS(Commit(batch, /*sync=*/true));
  leases_.reset();
  return OkStatus();
}

void RocksRecordDb::Flush() {
  const Result<rocksdb::DB*> db = folder_->db();
  if (db.ok()) (*db)->Flush(rocksdb::FlushOptions()).PermitUncheckedError();
}

}  // namespace

Result<std::unique_ptr<RecordDb>> RecordDb::Open(
    const RocksOptions& options,
    std::string new_store_id,
    std::function<void(const Status&)> on_background_error) {
  TRY(auto folder, RocksFolder::Open(options, std::move(on_background_error)));
  auto db = std::make_unique<RocksRecordDb>(options.dir, std::move(folder));
  TRY_STATUS(db->Describe(std::move(new_store_id)));
  return std::unique_ptr<RecordDb>(std::move(db));
}

}  // namespace berth::store
