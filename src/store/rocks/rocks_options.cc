// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/rocks_options.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace berth::store {
namespace {

// Two memtables of 4 MiB, one being written out: what a start after a crash replays.
constexpr uint64_t kWalBytesMax = 8 * 1024 * 1024;
constexpr size_t kBlockCacheBytes = 4 * 1024 * 1024;
constexpr size_t kBlockBytes = 16 * 1024;
constexpr uint64_t kFileBytes = 32 * 1024 * 1024;
constexpr int kOpenFilesMax = 64;  // 64 files of 32 MiB are 2 GiB of log
// The description of 64 files is 64 * 150 bytes.
constexpr size_t kDescriptionBytes = 16 * 1024;

rocksdb::CompressionType BestCompression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool has_lz4 = std::ranges::find(supported, rocksdb::kLZ4Compression) != supported.end();
  return has_lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

void LimitMemory(size_t memtable_bytes, rocksdb::Options& out) {
  out.write_buffer_size = memtable_bytes;
  out.max_write_buffer_number = 2;
  out.max_total_wal_size = kWalBytesMax;
  out.target_file_size_base = kFileBytes;
  out.max_open_files = kOpenFilesMax;
  out.max_background_jobs = 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes, /*num_shard_bits=*/0);
  table.block_size = kBlockBytes;
  table.format_version = 5;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

// RocksDB syncs a new description of its files (MANIFEST) before CURRENT names it, but appends to
// it later, and refuses to open if a power cut leaves garbage of what was appended. It cannot be
// cut off: damage to what was synced looks the same, and the logs that it replaced are gone. So
// nothing is appended: a description that has more than these bytes is followed by a new one.
void DescribeFilesAnew(rocksdb::Options& out) {
  out.max_manifest_file_size = 1;
  out.manifest_preallocation_size = kDescriptionBytes;
}

void KeepQuiet(rocksdb::Options& out) {
  out.info_log_level = rocksdb::WARN_LEVEL;
  out.keep_log_file_num = 2;
  out.max_log_file_size = 1024 * 1024;
  out.stats_dump_period_sec = 0;
  out.stats_persist_period_sec = 0;
}

// RocksDB's own wording of an operating system's error ends with it: "...: No space left on
// device".
std::string Cause(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return "no space left on device";
  std::string text = status.ToString();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool Mentions(const rocksdb::Status& status, std::string_view text) {
  return status.ToString().find(text) != std::string::npos;
}

}  // namespace

rocksdb::Options MakeRocksOptions(const RocksOptions& options,
                                  std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::Options out;
  out.create_if_missing = true;
  if (options.env != nullptr) out.env = options.env;
  out.compression = BestCompression();
  LimitMemory(options.memtable_bytes, out);
  DescribeFilesAnew(out);
  KeepQuiet(out);
  // A start puts what it finds in the log of writes into files of their own. The end of that log
  // may be in memory only, if its fsync failed or the process died before it; were the power to
  // take it later, RocksDB would drop all newer logs because of the gap.
  out.avoid_flush_during_recovery = false;
  out.skip_stats_update_on_db_open = true;
  // A torn tail is what a power cut leaves of a write that was never acknowledged.
  out.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  out.paranoid_checks = true;
  // There is one writer: no grouping and no spinning inside RocksDB.
  out.allow_concurrent_memtable_write = false;
  out.enable_write_thread_adaptive_yield = false;
  // An error ends in read-only; only RocksStore::Recover ends that.
  out.max_bgerror_resume_count = 0;
  out.listeners.push_back(std::move(listener));
  return out;
}

Status PrepareFolder(const RocksOptions& options) {
  if (options.env != nullptr) {
    const rocksdb::Status made = options.env->CreateDirIfMissing(options.dir);
    return made.ok() ? OkStatus() : OpenError(options.dir, made);
  }
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  if (error) {
    return Unavailable(
        fmt::format("data folder {} cannot be made: {}", options.dir, error.message()));
  }
  if (::chmod(options.dir.c_str(), 0700) != 0 && errno != EROFS) {
    return Unavailable(fmt::format("data folder {} cannot be made private to its owner: {}",
                                   options.dir,
                                   std::strerror(errno)));
  }
  return OkStatus();
}

Status WriteError(std::string_view dir, const rocksdb::Status& status) {
  return Unavailable(fmt::format("data folder {}: cannot write: {}", dir, Cause(status)));
}

Status OpenError(std::string_view dir, const rocksdb::Status& status) {
  if (Mentions(status, "lock hold by current process") ||
      (Mentions(status, "LOCK") && Mentions(status, "Resource temporarily unavailable"))) {
    return Unavailable(fmt::format("data folder {} is in use by another process", dir));
  }
  if (status.IsCorruption()) {
    return Internal(fmt::format("data folder {} is damaged: {}", dir, Cause(status)));
  }
  if (Mentions(status, "Permission denied") || Mentions(status, "Read-only file system")) {
    return Unavailable(fmt::format("data folder {} is not writable: {}", dir, Cause(status)));
  }
  return Unavailable(fmt::format("data folder {} cannot be opened: {}", dir, Cause(status)));
}

Status ReadError(std::string_view dir, const rocksdb::Status& status) {
  if (status.IsCorruption()) {
    return Internal(fmt::format("data folder {} is damaged: {}", dir, Cause(status)));
  }
  return Unavailable(fmt::format("data folder {}: cannot read: {}", dir, Cause(status)));
}

}  // namespace berth::store
