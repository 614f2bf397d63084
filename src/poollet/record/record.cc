// SPDX-License-Identifier: Apache-2.0
#include "poollet/record/record.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/log.h"
#include "poollet/record/log_format.h"

namespace berth::poollet {
namespace {

void Merge(RecordChange& into, const RecordChange& change) {
  // Order matters between puts and forgets of one uid: the later one wins.
  if (change.host.has_value()) into.host = change.host;
  for (const auto& put : change.puts) {
    std::erase(into.forgets, put.uid);
    std::erase_if(into.puts, [&](const RecordEntry& entry) { return entry.uid == put.uid; });
    into.puts.push_back(put);
  }
  for (const auto& uid : change.forgets) {
    std::erase_if(into.puts, [&](const RecordEntry& entry) { return entry.uid == uid; });
    into.forgets.push_back(uid);
  }
}

}  // namespace

Record::Record(rt::Loop& loop, Disk& disk, RecordState state, size_t file_bytes)
    : disk_(disk),
      state_(std::move(state)),
      file_bytes_(file_bytes),
      rewritten_bytes_(file_bytes),
      scope_(loop) {}

rt::Task<Result<std::unique_ptr<Record>>> Record::Open(rt::Loop& loop, Disk& disk) {
  const std::string name(kRecordFile);
  auto bytes = co_await disk.Read(name);
  if (!bytes.ok() && !bytes.status().Is(Reason::kNotFound)) co_return bytes.status();
  RecordState state;
  size_t cut = 0;
  if (bytes.ok()) {
    CO_TRY(auto parsed, ParseFile(name, *bytes));
    state = std::move(parsed.state);
    cut = parsed.cut_bytes;
    if (cut > 0) {
      LOG_WARNING("local record: cut {} bytes of an unfinished write at offset {}",
                  cut,
                  parsed.valid_bytes);
    }
  }
  const size_t file_bytes = bytes.ok() ? bytes->size() - cut : 0;
  std::unique_ptr<Record> record(new Record(loop, disk, std::move(state), file_bytes));
  if (!bytes.ok() || cut > 0) {
    RecordState whole = record->state_;
    CO_TRY_STATUS(co_await record->Rewrite(std::move(whole)));
  }
  co_return record;
}

rt::Task<Status> Record::Write(RecordChange change) {
  if (queue_.size() >= kRecordQueueMax) {
    co_return Status(Reason::kTooManyRequests,
                     "local record: " + std::to_string(kRecordQueueMax) + " changes are waiting");
  }
  auto pending = std::make_shared<Pending>();
  pending->change = std::move(change);
  queue_.push_back(pending);
  if (!flushing_) {
    flushing_ = true;
    scope_.Spawn("poollet.record", Flush());
  }
  CO_TRY_STATUS(co_await pending->done.Wait());
  co_return pending->status;
}

rt::Task<Status> Record::Flush() {
  while (!queue_.empty()) {
    std::vector<std::shared_ptr<Pending>> batch(std::make_move_iterator(queue_.begin()),
                                                std::make_move_iterator(queue_.end()));
    queue_.clear();
    RecordChange merged;
    for (const auto& pending : batch) Merge(merged, pending->change);
    const Status status = co_await WriteOnce(&merged);
    for (const auto& pending : batch) {
      pending->status = status;
      pending->done.Set();
    }
    if (status.Is(Reason::kCancelled)) break;
  }
  for (const auto& pending : std::exchange(queue_, {})) {
    pending->status = Cancelled();
    pending->done.Set();
  }
  flushing_ = false;
  co_return OkStatus();
}

rt::Task<Status> Record::WriteOnce(const RecordChange* change) {
  std::string entry = EncodeEntry(*change);
  const size_t size = entry.size();
  if (damaged_ || file_bytes_ + size > std::max(kRecordRewriteMin, 4 * rewritten_bytes_)) {
    RecordState next = state_;
    Apply(next, *change);
    co_return co_await Rewrite(std::move(next));
  }
  std::string name(kRecordFile);
  const Status appended = co_await disk_.Append(std::move(name), std::move(entry));
  if (!appended.ok()) {
    damaged_ = true;
    co_return appended.Wrap("write the local record");
  }
  file_bytes_ += size;
  Apply(state_, *change);
  co_return OkStatus();
}

rt::Task<Status> Record::Rewrite(RecordState next) {
  std::string file = EncodeFile(next);
  const size_t size = file.size();
  std::string name(kRecordFile);
  const Status replaced = co_await disk_.Replace(std::move(name), std::move(file));
  if (!replaced.ok()) {
    // It is the old file or the new one; if the new one, a later rewrite puts it right.
    damaged_ = true;
    co_return replaced.Wrap("write the local record");
  }
  damaged_ = false;
  file_bytes_ = size;
  rewritten_bytes_ = size;
  state_ = std::move(next);
  co_return OkStatus();
}

rt::Task<Status> Record::Close() { co_return co_await scope_.Join(); }
rt::Task<Status> Record::Abandon() { co_return co_await scope_.Close(); }

}  // namespace berth::poollet
