// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/rocks_log.h"

#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/uid.h"
#include "rt/thread_name.h"
#include "store/rocks/record_db.h"

namespace berth::store {
namespace {

using Group = std::vector<std::shared_ptr<const LogWrite>>;

// What the loop and the writer share.
struct WriterQueue {
  Mutex mutex;
  CondVar changed;
  std::deque<std::shared_ptr<const LogWrite>> writes GUARDED_BY(mutex);
  Status background_error GUARDED_BY(mutex);
  bool has_failed GUARDED_BY(mutex) = false;  // writes are dropped: the engine hears OnFailed
  bool stops GUARDED_BY(mutex) = false;
  bool flushes GUARDED_BY(mutex) = false;  // before it stops
  std::optional<Revision> recover_to GUARDED_BY(mutex);
};

// Jobs of the reader thread.
struct ReaderQueue {
  Mutex mutex;
  CondVar changed;
  std::deque<rt::Fn> jobs GUARDED_BY(mutex);
  bool stops GUARDED_BY(mutex) = false;
};

class RocksLog final : public RecordLog {
 public:
  RocksLog(rt::Loop& loop, const RocksOptions& options)
      : loop_(loop), threads_(options.threads), observer_(options.observer) {}
  ~RocksLog() override;

  Status OpenDb(const RocksOptions& options);
  const std::string& store_id() const { return db_->store_id(); }
  std::shared_ptr<const AtomicCommitStats> stats() const { return stats_; }

  Status Load(LogLoader& loader) override { return db_->Load(loader); }
  void Start(LogSink& sink) override;
  void Append(std::shared_ptr<const LogWrite> write) override;
  void Read(std::vector<Position> positions,
            Done<Result<std::vector<std::optional<Record>>>> done) override;
  void ReadHistory(HistoryRequest request, Done<Result<HistoryPage>> done) override;
  void Recover(Revision durable, Done<Status> done) override;
  void Stop(Done<Status> done) override;

 private:
  // One step of the writer; false when it stops.
  enum class Wait : uint8_t { kYes, kNo };
  bool WriteOnce(Wait wait);
  Group TakeGroup() REQUIRES(queue_.mutex);
  void WriteGroup(const Group& group);
  void Fail(const Status& why);
  void RecoverNow(Revision durable);
  void WakeWriter();
  void RunWriter();
  void RunReader();
  void Join();

  // Runs fn on the loop if the log still lives then.
  template <class Fn>
  void Tell(Fn fn) {
    loop_.Post("store.rocks", [self = self_, fn = std::move(fn)]() mutable {
      if (*self != nullptr) fn(**self);
    });
  }
  // Runs `job` with the database off the loop and `done` with its answer on the loop.
  template <class T, class Job>
  void RunRead(Job job, Done<Result<T>> done);

  rt::Loop& loop_;
  const RocksOptions::Threads threads_;
  CommitObserver* const observer_;
  LogSink* sink_ = nullptr;
  std::shared_ptr<AtomicCommitStats> stats_ = std::make_shared<AtomicCommitStats>();

  WriterQueue queue_;
  ReaderQueue reads_;
  std::unique_ptr<RecordDb> db_;   // goes before the queues: its own threads report errors to them
  bool writer_is_posted_ = false;  // Threads::kNone
  Done<Status> recover_done_;
  Done<Status> stop_done_;
  std::shared_ptr<RocksLog*> self_ = std::make_shared<RocksLog*>(this);
  std::thread writer_;
  std::thread reader_;
};

RocksLog::~RocksLog() {
  *self_ = nullptr;
  Join();
}

void RocksLog::Join() {
  {
    MutexLock lock(queue_.mutex);
    queue_.stops = true;
  }
  queue_.changed.NotifyAll();
  {
    MutexLock lock(reads_.mutex);
    reads_.stops = true;
  }
  reads_.changed.NotifyAll();
  if (writer_.joinable()) writer_.join();
  if (reader_.joinable()) reader_.join();
}

Status RocksLog::OpenDb(const RocksOptions& options) {
  // Called inside RocksDB, on any thread: only leaves a note for the writer.
  auto on_error = [this](const Status& why) {
    MutexLock lock(queue_.mutex);
    if (queue_.background_error.ok()) queue_.background_error = why;
    queue_.changed.NotifyAll();
  };
  TRY(db_, RecordDb::Open(options, NewUid(loop_.random()), std::move(on_error)));
  return OkStatus();
}

void RocksLog::Start(LogSink& sink) {
  sink_ = &sink;
  if (threads_ == RocksOptions::Threads::kOwn) writer_ = std::thread([this] { RunWriter(); });
}

void RocksLog::RunWriter() {
  rt::SetThreadName("store-commit");
  while (WriteOnce(Wait::kYes)) {
  }
  bool flushes = false;
  {
    MutexLock lock(queue_.mutex);
    flushes = queue_.flushes && !queue_.has_failed;
  }
  if (flushes) db_->Flush();
  Tell([](RocksLog& log) {
    log.Join();
    log.stop_done_(OkStatus());
  });
}

void RocksLog::WakeWriter() {
  if (threads_ == RocksOptions::Threads::kOwn) {
    queue_.changed.NotifyOne();
    return;
  }
  if (writer_is_posted_) return;
  writer_is_posted_ = true;
  Tell([](RocksLog& log) {
    log.writer_is_posted_ = false;
    log.WriteOnce(Wait::kNo);
  });
}

void RocksLog::Append(std::shared_ptr<const LogWrite> write) {
  {
    MutexLock lock(queue_.mutex);
    if (queue_.has_failed) return;
    queue_.writes.push_back(std::move(write));
  }
  WakeWriter();
}

Group RocksLog::TakeGroup() {
  Group group;
  size_t bytes = 0;
  while (!queue_.writes.empty() && group.size() < kGroupWritesMax && bytes < kGroupBytesMax) {
    bytes += queue_.writes.front()->bytes();
    group.push_back(std::move(queue_.writes.front()));
    queue_.writes.pop_front();
  }
  return group;
}

bool RocksLog::WriteOnce(Wait wait) {
  Group group;
  Status error;
  std::optional<Revision> recover_to;
  {
    MutexLock lock(queue_.mutex);
    while (wait == Wait::kYes && queue_.writes.empty() && !queue_.stops && !queue_.recover_to &&
           (queue_.background_error.ok() || queue_.has_failed)) {
      queue_.changed.Wait(queue_.mutex);
    }
    recover_to = std::exchange(queue_.recover_to, std::nullopt);
    if (!queue_.has_failed) error = queue_.background_error;
    if (error.ok()) group = TakeGroup();
    if (group.empty() && error.ok() && !recover_to && queue_.stops) return false;
  }
  if (recover_to.has_value()) RecoverNow(*recover_to);
  if (!error.ok()) {
    Fail(error);
  } else if (!group.empty()) {
    WriteGroup(group);
  }
  return true;
}

void RocksLog::WriteGroup(const Group& group) {
  const uint64_t number = stats_->groups.fetch_add(1, std::memory_order_relaxed) + 1;
  if (observer_ != nullptr) observer_->OnCommitBegin(number);
  const Status written = db_->Write(group);
  if (observer_ != nullptr) observer_->OnCommitEnd(number);
  if (!written.ok()) return Fail(written);
  stats_->writes.fetch_add(group.size(), std::memory_order_relaxed);
  Tell([count = group.size()](RocksLog& log) { log.sink_->OnWritten(count); });
  if (threads_ == RocksOptions::Threads::kOwn) return;
  MutexLock lock(queue_.mutex);
  if (!queue_.writes.empty()) WakeWriter();
}

void RocksLog::Fail(const Status& why) {
  {
    MutexLock lock(queue_.mutex);
    queue_.has_failed = true;
    queue_.writes.clear();
  }
  Tell([why](RocksLog& log) { log.sink_->OnFailed(why); });
}

void RocksLog::Recover(Revision durable, Done<Status> done) {
  recover_done_ = std::move(done);
  {
    MutexLock lock(queue_.mutex);
    queue_.recover_to = durable;
  }
  WakeWriter();
}

void RocksLog::RecoverNow(Revision durable) {
  const Status recovered = db_->Recover(durable);
  if (recovered.ok()) {
    MutexLock lock(queue_.mutex);
    queue_.has_failed = false;
    queue_.background_error = OkStatus();
  }
  Tell([recovered](RocksLog& log) { std::exchange(log.recover_done_, nullptr)(recovered); });
}

void RocksLog::Stop(Done<Status> done) {
  bool has_failed = false;
  stop_done_ = std::move(done);
  {
    MutexLock lock(queue_.mutex);
    queue_.stops = true;
    queue_.flushes = true;
    has_failed = queue_.has_failed;
  }
  queue_.changed.NotifyAll();
  if (threads_ == RocksOptions::Threads::kOwn) return;
  if (!has_failed) db_->Flush();
  Tell([](RocksLog& log) { log.stop_done_(OkStatus()); });
}

template <class T, class Job>
void RocksLog::RunRead(Job job, Done<Result<T>> done) {
  if (threads_ == RocksOptions::Threads::kNone) {
    return Tell([job = std::move(job), done = std::move(done)](RocksLog& log) mutable {
      done(job(*log.db_));
    });
  }
  bool is_full = false;
  {
    MutexLock lock(reads_.mutex);
    is_full = reads_.jobs.size() >= kPendingReadsMax;
    if (!is_full) {
      reads_.jobs.emplace_back([this, job = std::move(job), done = std::move(done)]() mutable {
        Result<T> answer = job(*db_);
        Tell([answer = std::move(answer), done = std::move(done)](RocksLog&) mutable {
          done(std::move(answer));
        });
      });
    }
  }
  if (is_full) {
    return Tell([done = std::move(done)](RocksLog&) mutable {
      done(Status(Reason::kTooManyRequests, "too many reads of history wait for the disk")
               .WithRetryAfter(Duration::Seconds(1)));
    });
  }
  if (!reader_.joinable()) reader_ = std::thread([this] { RunReader(); });
  reads_.changed.NotifyOne();
}

void RocksLog::RunReader() {
  rt::SetThreadName("store-read");
  while (true) {
    rt::Fn job;
    {
      MutexLock lock(reads_.mutex);
      while (reads_.jobs.empty() && !reads_.stops) reads_.changed.Wait(reads_.mutex);
      if (reads_.jobs.empty()) return;  // what was asked for is answered before it stops
      job = std::move(reads_.jobs.front());
      reads_.jobs.pop_front();
    }
    job();
  }
}

void RocksLog::Read(std::vector<Position> positions,
                    Done<Result<std::vector<std::optional<Record>>>> done) {
  using Records = std::vector<std::optional<Record>>;
  auto job = [positions = std::move(positions)](RecordDb& db) -> Result<Records> {
    Records records;
    records.reserve(positions.size());
    for (const Position at : positions) {
      TRY(std::optional<Record> record, db.Read(at));
      records.push_back(std::move(record));
    }
    return records;
  };
  RunRead<Records>(std::move(job), std::move(done));
}

void RocksLog::ReadHistory(HistoryRequest request, Done<Result<HistoryPage>> done) {
  auto job = [request = std::move(request)](RecordDb& db) { return db.ReadHistory(request); };
  RunRead<HistoryPage>(std::move(job), std::move(done));
}

}  // namespace

Result<OpenedRocksLog> OpenRocksLog(rt::Loop& loop, const RocksOptions& options) {
  auto log = std::make_unique<RocksLog>(loop, options);
  TRY_STATUS(log->OpenDb(options));
  OpenedRocksLog opened{.log = nullptr, .store_id = log->store_id(), .stats = log->stats()};
  opened.log = std::move(log);
  return opened;
}

}  // namespace berth::store
