// SPDX-License-Identifier: Apache-2.0
// A RocksLog carries the engine's writes and reads to a RecordDb: writes on one thread, everything
// that is queued as one group with one fsync; reads on another, which starts at the first read.
//
// Everything that is posted to the loop about writes is posted by the writer, in the order in which
// it happened.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "rt/loop.h"
#include "store/mvcc/record_log.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

// One group, at most: 1,024 transactions applied to the index take about 3 ms of the loop.
constexpr size_t kGroupWritesMax = 1'024;
constexpr size_t kGroupBytesMax = 4 * 1024 * 1024;
// Reads that wait for the reader thread; each belongs to one waiting caller.
constexpr size_t kPendingReadsMax = 4'096;

struct AtomicCommitStats {
  std::atomic<uint64_t> groups = 0;
  std::atomic<uint64_t> writes = 0;
};

struct OpenedRocksLog {
  std::unique_ptr<RecordLog> log;
  std::string store_id;
  std::shared_ptr<const AtomicCommitStats> stats;
};
Result<OpenedRocksLog> OpenRocksLog(rt::Loop& loop, const RocksOptions& options);

}  // namespace berth::store
