// SPDX-License-Identifier: Apache-2.0
// A RecordLog is what a store's engine writes to and reads history from: an append-only run of
// records ordered by Position, the leases, and the compacted revision. The engine decides, the log
// remembers. Everything here is called on the loop, and every callback arrives on the loop, in a
// later turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/mvcc/record.h"
#include "store/store.h"

namespace berth::store {

template <class T>
using Done = std::move_only_function<void(T)>;

struct LeaseGrant {
  LeaseId id;
  Duration ttl;
};

// One atomic change of the log. Immutable once appended: a writer thread reads it while the engine
// does.
struct LogWrite {
  std::vector<Record> records;  // one transaction, ascending
  std::vector<LeaseGrant> granted;
  std::vector<LeaseId> ended;
  std::optional<Revision> compacted;
  std::vector<Position> erased;  // swept by compaction; losing this in a crash does no harm

  // Nobody waits for it, so it needs no fsync of its own.
  bool lazy() const {
    return records.empty() && granted.empty() && ended.empty() && !compacted.has_value();
  }
  // Roughly what it holds in memory and adds to the log.
  size_t bytes() const;
};

// Receives what Load finds, in this order: OnCompacted, leases, records ascending.
class LogLoader {
 public:
  virtual ~LogLoader() = default;
  virtual void OnCompacted(Revision compacted) = 0;
  virtual void OnLease(LeaseGrant lease) = 0;
  virtual void OnRecord(Record record) = 0;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  // The oldest `count` writes that are in flight are durable.
  virtual void OnWritten(size_t count) = 0;
  // None of the writes in flight is acknowledged, nor will later ones be, until Recover() succeeds.
  virtual void OnFailed(Status why) = 0;
};

struct HistoryRequest {
  std::string start;
  std::string end;
  Revision from;
  Revision through;  // what lies behind is not read: it may not be acknowledged yet
};
struct HistoryPage {
  std::vector<Event> events;  // whole transactions
  Revision through;           // everything up to here has been looked at
};
// 512 events * (1.5 KB value + 1.5 KB previous) = 1.5 MB per page; a page ends with a transaction.
constexpr size_t kHistoryPageEvents = 512;
constexpr size_t kHistoryPageBytes = 4 * 1024 * 1024;
// A page also ends after this many records that do not concern the range: 20,000 * 2 us = 40 ms.
constexpr size_t kHistoryPageScanned = 20'000;

class RecordLog {
 public:
  virtual ~RecordLog() = default;

  // Once, before anything else. Errors name the place and the revision.
  virtual Status Load(LogLoader& loader) = 0;
  // Once, after Load. The sink outlives the log.
  virtual void Start(LogSink& sink) = 0;

  virtual void Append(std::shared_ptr<const LogWrite> write) = 0;

  // The records at these positions, in this order; nullopt for one that is not there.
  virtual void Read(std::vector<Position> positions,
                    Done<Result<std::vector<std::optional<Record>>>> done) = 0;
  virtual void ReadHistory(HistoryRequest request, Done<Result<HistoryPage>> done) = 0;

  // After OnFailed: makes the log writable again if that is safe, forgetting every write behind
  // `durable` that was never acknowledged.
  virtual void Recover(Revision durable, Done<Status> done) = 0;
  // Writes what is queued, then stops. Nothing is called afterwards.
  virtual void Stop(Done<Status> done) = 0;
};

}  // namespace berth::store
