// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory_log.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "store/mvcc/history_page.h"

namespace berth::store {
namespace {

void StoreOn(const LogWrite& write, MemoryDisk& disk) {
  for (const Record& record : write.records) disk.records.emplace(record.at, record);
  for (const LeaseGrant& lease : write.granted) disk.leases.emplace(lease.id, lease.ttl);
  for (const LeaseId id : write.ended) disk.leases.erase(id);
  if (write.compacted.has_value()) disk.compacted = std::max(disk.compacted, *write.compacted);
  for (const Position at : write.erased) disk.records.erase(at);
}

class MemoryLog final : public RecordLog {
 public:
  MemoryLog(rt::Loop& loop, std::shared_ptr<MemoryDisk> disk)
      : loop_(loop), disk_(std::move(disk)) {}
  ~MemoryLog() override { *self_ = nullptr; }

  Status Load(LogLoader& loader) override {
    loader.OnCompacted(disk_->compacted);
    for (const auto& [id, ttl] : disk_->leases) loader.OnLease({.id = id, .ttl = ttl});
    for (const auto& [at, record] : disk_->records) loader.OnRecord(record);
    return OkStatus();
  }
  void Start(LogSink& sink) override { sink_ = &sink; }

  void Append(std::shared_ptr<const LogWrite> write) override {
    in_flight_.push_back(std::move(write));
    if (in_flight_.size() == 1) Later([](MemoryLog& log) { log.Finish(); });
  }

  void Read(std::vector<Position> positions,
            Done<Result<std::vector<std::optional<Record>>>> done) override {
    Later([positions = std::move(positions), done = std::move(done)](MemoryLog& log) mutable {
      std::vector<std::optional<Record>> records;
      records.reserve(positions.size());
      for (const Position at : positions) records.push_back(log.Get(at));
      done(std::move(records));
    });
  }

  void ReadHistory(HistoryRequest request, Done<Result<HistoryPage>> done) override {
    Later([request = std::move(request), done = std::move(done)](MemoryLog& log) mutable {
      done(log.MakePage(request));
    });
  }

  void Recover(Revision /*durable*/, Done<Status> done) override {
    Later([done = std::move(done)](MemoryLog&) mutable { done(OkStatus()); });
  }
  void Stop(Done<Status> done) override {
    Later([done = std::move(done)](MemoryLog&) mutable { done(OkStatus()); });
  }

 private:
  template <class Fn>
  void Later(Fn fn) {
    loop_.Post("store.memory", [self = self_, fn = std::move(fn)]() mutable {
      if (*self != nullptr) fn(**self);
    });
  }

  // All that was appended since the last turn becomes durable as one group.
  void Finish() {
    const auto group = std::exchange(in_flight_, {});
    for (const auto& write : group) StoreOn(*write, *disk_);
    sink_->OnWritten(group.size());
  }

  std::optional<Record> Get(Position at) const {
    const auto it = disk_->records.find(at);
    if (it == disk_->records.end()) return std::nullopt;
    return it->second;
  }

  Result<HistoryPage> MakePage(const HistoryRequest& request) const {
    HistoryPageBuilder page(request);
    const auto previous = [this](Position at) -> Result<std::optional<Record>> { return Get(at); };
    auto it = disk_->records.lower_bound({.revision = request.from, .sub = 0});
    for (; it != disk_->records.end(); ++it) {
      if (it->first.revision > request.through) break;
      if (!page.Accepts(it->first)) return page.Take();
      TRY_STATUS(page.Add(it->second, previous));
    }
    page.ReachedEnd();
    return page.Take();
  }

  rt::Loop& loop_;
  std::shared_ptr<MemoryDisk> disk_;
  LogSink* sink_ = nullptr;
  std::vector<std::shared_ptr<const LogWrite>> in_flight_;
  std::shared_ptr<MemoryLog*> self_ = std::make_shared<MemoryLog*>(this);
};

}  // namespace

std::unique_ptr<RecordLog> MakeMemoryLog(rt::Loop& loop, std::shared_ptr<MemoryDisk> disk) {
  return std::make_unique<MemoryLog>(loop, std::move(disk));
}

}  // namespace berth::store
