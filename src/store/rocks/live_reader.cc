// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/live_reader.h"

#include <fmt/format.h>
#include <rocksdb/db.h>

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "store/mvcc/record.h"
#include "store/rocks/linked_files.h"
#include "store/rocks/meta_record.h"
#include "store/rocks/rocks_options.h"

namespace berth::store {
namespace {

// The server may take a file away between its description and its linking.
constexpr int kOpenAttempts = 20;
constexpr char kRecordPrefix = 'r';

rocksdb::Options ReadingOptions() {
  RocksOptions options;
  rocksdb::Options out = MakeRocksOptions(options, nullptr);
  out.listeners.clear();
  out.create_if_missing = false;
  out.max_open_files = -1;  // all are opened at once, and stay readable when their names are gone
  return out;
}

Result<std::unique_ptr<rocksdb::DB>> OpenLinked(const std::string& dir) {
  const rocksdb::Options options = ReadingOptions();
  rocksdb::Status opened;
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    LinkedFolder folder(dir);
    TRY_STATUS(folder.Link());
    rocksdb::DB* raw = nullptr;
    opened = rocksdb::DB::OpenForReadOnly(options, folder.path(), &raw);
    if (opened.ok()) return std::unique_ptr<rocksdb::DB>(raw);
  }
  return OpenError(dir, opened);
}

// The newest record of each key that is there.
using Newest = std::map<std::string, Position, std::less<>>;

class LiveReader {
 public:
  LiveReader(const std::string& dir, rocksdb::DB& db) : dir_(dir), db_(db) {}

  Status CheckMeta() {
    std::string bytes;
    const rocksdb::Status read = db_.Get(rocksdb::ReadOptions(), "m", &bytes);
    if (!read.ok()) return ReadError(dir_, read);
    return DecodeMeta(dir_, bytes).status();
  }

  // Records lie in the order of their revisions, so the last one of a key is its state.
  Status Scan(LiveState& state) {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> it(db_.NewIterator(options));
    for (it->Seek(rocksdb::Slice(&kRecordPrefix, 1)); it->Valid(); it->Next()) {
      const std::string_view key = it->key().ToStringView();
      if (key.size() != 1 + kPositionBytes || key.front() != kRecordPrefix) break;
      TRY(const Record record, Decode(DecodePosition(key.substr(1)), it->value().ToStringView()));
      state.revision = record.at.revision;
      if (record.type == Op::Type::kPut) {
        newest_.insert_or_assign(record.key, record.at);
      } else {
        newest_.erase(record.key);
      }
    }
    state.keys = newest_.size();
    return it->status().ok() ? OkStatus() : ReadError(dir_, it->status());
  }

  Status Visit(const std::function<Status(const KeyValue&)>& visit) {
    for (const auto& [key, at] : newest_) {
      std::string bytes;
      const rocksdb::Status read =
          db_.Get(rocksdb::ReadOptions(), kRecordPrefix + EncodePosition(at), &bytes);
      if (!read.ok()) return ReadError(dir_, read);
      TRY(const Record record, Decode(at, bytes));
      TRY_STATUS(visit(ToKeyValue(record)));
    }
    return OkStatus();
  }

 private:
  Result<Record> Decode(Position at, std::string_view bytes) const {
    Result<Record> record = DecodeRecord(at, bytes);
    if (record.ok()) return record;
    return record.status().Wrap(
        fmt::format("data folder {}: revision {}", dir_, at.revision.value));
  }

  const std::string& dir_;
  rocksdb::DB& db_;
  Newest newest_;
};

}  // namespace

Result<LiveState> ReadLiveStore(const std::string& dir,
                                const std::function<Status(const KeyValue&)>& visit) {
  std::error_code error;
  if (!std::filesystem::exists(dir + "/CURRENT", error)) {
    return NotFound(fmt::format("data folder {} holds no store", dir));
  }
  TRY(const std::unique_ptr<rocksdb::DB> db, OpenLinked(dir));
  LiveReader reader(dir, *db);
  TRY_STATUS(reader.CheckMeta());
  LiveState state;
  state.revision = Revision{1};
  TRY_STATUS(reader.Scan(state));
  TRY_STATUS(reader.Visit(visit));
  return state;
}

}  // namespace berth::store
