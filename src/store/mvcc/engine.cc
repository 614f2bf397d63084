// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "store/key_range.h"
#include "store/mvcc/index_builder.h"

namespace berth::store {

// Builds the index of a new engine. Only used on its loop.
class Engine::Loader final : public LogLoader {
 public:
  explicit Loader(Engine& engine) : engine_(engine) {}
  void OnCompacted(Revision compacted) override {
    engine_.loop_.Assert();
    engine_.compacted_ = compacted;
    engine_.durable_ = std::max(engine_.durable_, compacted);
  }
  void OnLease(LeaseGrant lease) override {
    engine_.loop_.Assert();
    engine_.leases_.Add(lease.id, lease.ttl, engine_.loop_.Now());
  }
  void OnRecord(Record record) override {
    engine_.loop_.Assert();
    engine_.durable_ = std::max(engine_.durable_, record.at.revision);
    builder_.Add(record);
  }
  void Finish() {
    engine_.loop_.Assert();
    engine_.index_ = builder_.Take();
  }

 private:
  Engine& engine_;
  IndexBuilder builder_;
};

Result<std::shared_ptr<Engine>> Engine::Open(rt::Loop& loop, std::unique_ptr<RecordLog> log) {
  loop.Assert();
  std::shared_ptr<Engine> engine(new Engine(loop, std::move(log)));
  Loader loader(*engine);
  TRY_STATUS(engine->log_->Load(loader));
  loader.Finish();
  engine->log_->Start(*engine);
  engine->loop_.Assert();
  engine->Begin();
  return engine;
}

void Engine::Begin() {
  assigned_ = std::max(assigned_, durable_);  // (4)
  index_.ForEach([this](const std::string& key, const Index::Entry& entry) {
    loop_.Assert();
    leases_.Move(key, {}, entry.lease);
  });
  ArmLeaseTimer();
  // A crash may have interrupted a sweep.
  if (compacted_.value != 0) StartSweep();
}

Engine::~Engine() {
  loop_.Assert();
  *self_ = nullptr;
  if (lease_timer_.value != 0) loop_.CancelTimer(lease_timer_);
}

Status Engine::CheckWritable() const {
  if (is_closing_) return Unavailable("the store is closed");
  if (!failure_.ok()) return failure_;
  if (pending_.size() < kMaxPendingWrites && pending_bytes_ < kMaxPendingBytes) return OkStatus();
  return Status(
             Reason::kTooManyRequests,
             fmt::format("{} transactions ({} bytes) wait for the disk, at most {} ({} bytes) may",
                         pending_.size(),
                         pending_bytes_,
                         kMaxPendingWrites,
                         kMaxPendingBytes))
      .WithRetryAfter(kPendingRetryAfter);
}

Status Engine::CheckLeases(const std::vector<Record>& records) const {
  for (const Record& record : records) {
    if (record.lease.value == 0 || leases_.IsAlive(record.lease)) continue;
    return NotFound(fmt::format("lease {} not found", record.lease.value));
  }
  return OkStatus();
}

void Engine::Queue(LogWrite write, Done<const Status&> done) {
  Pending& pending = pending_.emplace_back();
  pending.bytes = write.bytes();
  if (!write.records.empty()) pending.revision = write.records.front().at.revision;
  pending.write = std::make_shared<const LogWrite>(std::move(write));
  pending.done.push_back(std::move(done));
  pending_bytes_ += pending.bytes;
  AttachToLeases(*pending.write);  // before Add: it asks the tip for the state before
  tip_.Add(*pending.write);
  log_->Append(pending.write);
}

void Engine::AttachToLeases(const LogWrite& write) {
  for (const Record& record : write.records) {
    const bool is_new = record.previous.revision.value == 0;
    const LeaseId before = is_new ? LeaseId{} : tip_.Look(record.key).lease;
    leases_.Move(record.key, before, record.lease);
  }
}

void Engine::AfterPending(Done<const Status&> done) {
  if (pending_.empty()) {
    done(OkStatus());
  } else {
    pending_.back().done.push_back(std::move(done));
  }
}

void Engine::Commit(Txn txn, Done<Result<TxnResult>> done) {
  loop_.Assert();
  Status status = ValidateTxn(txn);
  if (status.ok()) status = CheckWritable();
  if (!status.ok()) return done(std::move(status));
  Verdict verdict = Evaluate(std::move(txn), tip_, assigned_.Next());
  status = CheckLeases(verdict.records);
  if (!status.ok()) return done(std::move(status));
  const bool changes = !verdict.records.empty();
  if (changes) assigned_ = assigned_.Next();
  TxnResult result{.committed = verdict.committed,
                   .revision = changes || verdict.saw_pending ? assigned_ : durable_,
                   .conflicts = std::move(verdict.conflicts)};
  auto answer = [done = std::move(done),
                 result = std::move(result)](const Status& written) mutable {
    if (written.ok()) return done(std::move(result));
    done(written);
  };
  if (changes) {
    LogWrite write;
    write.records = std::move(verdict.records);
    Queue(std::move(write), std::move(answer));
  } else if (verdict.saw_pending) {
    AfterPending(std::move(answer));  // (3)
  } else {
    answer(OkStatus());
  }
}

Event Engine::ToEvent(const Record& record) const {
  Event event;
  const bool is_new = record.previous.revision.value == 0;
  const Index::Entry* before = is_new ? nullptr : index_.Find(record.key);
  if (before != nullptr) {
    event.previous = KeyValue{.key = record.key,
                              .value = before->value,
                              .create_revision = before->create_revision,
                              .mod_revision = before->newest.revision,
                              .version = before->version,
                              .lease = before->lease};
  }
  const bool is_put = record.type == Op::Type::kPut;
  event.type = is_put ? Event::Type::kPut : Event::Type::kDelete;
  event.kv = ToKeyValue(record);
  return event;
}

void Engine::MakeDurable(Pending& pending, std::vector<Event>& events) {
  for (const Record& record : pending.write->records) {
    if (hub_.size() > 0) events.push_back(ToEvent(record));
    index_.Apply(record);
  }
  tip_.Settle(*pending.write);
  if (pending.revision.value != 0) durable_ = pending.revision;
  if (pending.write->compacted.has_value()) {
    compacted_ = std::max(compacted_, *pending.write->compacted);
  }
  for (const LeaseId id : pending.write->ended) leases_.Forget(id);
}

void Engine::OnWritten(size_t count) {
  loop_.Assert();
  CHECK(count <= pending_.size()) << count;
  std::vector<Event> events;
  std::vector<Pending> written;
  written.reserve(count);
  const Revision durable_before = durable_;
  const Revision compacted_before = compacted_;
  for (; count > 0; --count) {
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= pending.bytes;
    MakeDurable(pending, events);
    written.push_back(std::move(pending));
  }
  if (durable_ > durable_before) hub_.Publish(events, durable_);
  if (compacted_ > compacted_before) {
    hub_.OnCompacted(compacted_);
    StartSweep();
  }
  for (Pending& pending : written) {
    for (auto& done : pending.done) done(OkStatus());
  }
  if (is_closing_) FinishClose();
}

void Engine::OnFailed(Status why) {
  loop_.Assert();
  if (failure_.ok()) {
    LOG_ERROR("store: {}; the store is read-only", why.message());
    failure_ = std::move(why);
  }
  tip_.Clear();
  pending_bytes_ = 0;
  // assigned_ stays where it is. (4)
  for (Pending& pending : std::exchange(pending_, {})) {
    for (auto& done : pending.done) done(failure_);
  }
  if (is_closing_) FinishClose();
}

void Engine::Range(RangeRequest request, Done<Result<RangeResult>> done) {
  loop_.Assert();
  if (is_closing_) return done(Unavailable("the store is closed"));
  if (Status status = ValidateRange(request.start, request.end); !status.ok()) {
    return done(std::move(status));
  }
  const Revision at = request.revision.value == 0 ? durable_ : request.revision;
  if (at > durable_) {
    return done(BadRequest(
        fmt::format("revision {} is in the future, the store is at {}", at.value, durable_.value)));
  }
  if (at < compacted_) return done(CompactedAway("a read at", at, compacted_));
  Index::Page page = index_.Range(request, at);
  RangeResult result{
      .items = std::move(page.items), .revision = at, .more = page.more, .count = page.count};
  if (page.in_log.empty()) return done(std::move(result));
  std::vector<Position> positions;
  positions.reserve(page.in_log.size());
  for (const auto& [item, position] : page.in_log) positions.push_back(position);
  log_->Read(std::move(positions),
             [this,
              request = std::move(request),
              result = std::move(result),
              in_log = std::move(page.in_log),
              done = std::move(done)](Result<std::vector<std::optional<Record>>> records) mutable {
               loop_.Assert();
               if (!records.ok()) return done(records.status());
               FinishRange(
                   std::move(result), std::move(in_log), *std::move(records), request, done);
             });
}

void Engine::FinishRange(RangeResult result,
                         std::vector<std::pair<size_t, Position>> in_log,
                         std::vector<std::optional<Record>> records,
                         const RangeRequest& request,
                         Done<Result<RangeResult>>& done) {
  // Compaction may have overtaken the read and swept what it needs.
  if (result.revision < compacted_) {
    return done(CompactedAway("a read at", result.revision, compacted_));
  }
  for (size_t i = 0; i < in_log.size(); ++i) {
    if (!records[i].has_value()) {
      return done(Internal(fmt::format("the log has no record at revision {}, which key {} needs",
                                       in_log[i].second.revision.value,
                                       result.items[in_log[i].first].key)));
    }
    KeyValue& item = result.items[in_log[i].first];
    item = ToKeyValue(*records[i]);
    if (request.keys_only) item.value = Bytes();
  }
  done(std::move(result));
}

Result<std::shared_ptr<Watcher>> Engine::StartWatch(WatchRequest request) {
  loop_.Assert();
  if (is_closing_) return Unavailable("the store is closed");
  TRY_STATUS(ValidateRange(request.start, request.end));
  auto watcher = std::make_shared<Watcher>();
  watcher->start = std::move(request.start);
  watcher->end = std::move(request.end);
  watcher->next = request.from.value == 0 ? durable_.Next() : request.from;
  if (watcher->next <= compacted_) return CompactedAway("a watch from", watcher->next, compacted_);
  if (hub_.size() >= kMaxWatchers) {
    return Status(Reason::kTooManyRequests,
                  fmt::format("the store has {} watchers, at most that many are allowed",
                              kMaxWatchers))
        .WithRetryAfter(kPendingRetryAfter);
  }
  hub_.Add(watcher, durable_);
  return watcher;
}

void Engine::CatchUp(const std::shared_ptr<Watcher>& watcher) {
  loop_.Assert();
  if (watcher->phase != Watcher::Phase::kCatchingUp || watcher->is_reading) return;
  watcher->is_reading = true;
  HistoryRequest request{
      .start = watcher->start, .end = watcher->end, .from = watcher->next, .through = durable_};
  log_->ReadHistory(std::move(request), [this, watcher](Result<HistoryPage> page) {
    loop_.Assert();
    // A compaction that overtook this page has ended the watcher already.
    if (!page.ok()) return watcher->End(page.status());
    hub_.OnPage(watcher, *std::move(page), durable_);
  });
}

void Engine::EndWatch(const std::shared_ptr<Watcher>& watcher) {
  loop_.Assert();
  hub_.Remove(watcher);
}

Result<Revision> Engine::revision() const {
  loop_.Assert();
  if (is_closing_) return Unavailable("the store is closed");
  return durable_;
}

Result<Revision> Engine::compacted() const {
  loop_.Assert();
  if (is_closing_) return Unavailable("the store is closed");
  return compacted_;
}

Status Engine::health() const {
  loop_.Assert();
  return is_closing_ ? Unavailable("the store is closed") : failure_;
}

size_t Engine::key_count() const {
  loop_.Assert();
  return index_.size();
}

void Engine::Recover(Done<Status> done) {
  loop_.Assert();
  if (is_closing_) return done(Unavailable("the store is closed"));
  if (failure_.ok()) return done(OkStatus());
  if (is_recovering_) return done(Unavailable("a recovery of the store is under way"));
  is_recovering_ = true;
  log_->Recover(durable_, [this, done = std::move(done)](Status status) mutable {
    loop_.Assert();
    is_recovering_ = false;
    if (status.ok()) {
      failure_ = OkStatus();
      leases_.Reset(loop_.Now());
      Begin();
    }
    done(std::move(status));
  });
}

void Engine::Close(Done<Status> done) {
  loop_.Assert();
  if (is_closing_) return done(OkStatus());
  is_closing_ = true;
  close_done_ = std::move(done);
  if (lease_timer_.value != 0) loop_.CancelTimer(std::exchange(lease_timer_, {}));
  hub_.EndAll(Unavailable("the store is closed"));
  FinishClose();
}

void Engine::FinishClose() {
  if (!pending_.empty() || !close_done_) return;
  log_->Stop(std::exchange(close_done_, nullptr));
}

}  // namespace berth::store
