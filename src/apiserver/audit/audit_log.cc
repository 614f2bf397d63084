// SPDX-License-Identifier: Apache-2.0
#include "apiserver/audit/audit_log.h"

#include <utility>

#include "base/log.h"

namespace berth::apiserver {

Result<std::unique_ptr<AuditLog>> AuditLog::Open(AuditFile::Options options,
                                                 rt::Loop& loop,
                                                 rt::BlockingPool& pool,
                                                 metrics::Registry& metrics,
                                                 std::optional<AuditPolicy> policy) {
  TRY(auto file, AuditFile::Open(std::move(options)));
  return std::unique_ptr<AuditLog>(
      new AuditLog(std::move(file), loop, pool, metrics, std::move(policy)));
}

AuditLog::AuditLog(std::unique_ptr<AuditFile> file,
                   rt::Loop& loop,
                   rt::BlockingPool& pool,
                   metrics::Registry& metrics,
                   std::optional<AuditPolicy> policy)
    : file_(std::move(file)),
      policy_(std::move(policy)),
      loop_(loop),
      pool_(pool),
      written_records_(metrics.GetCounter("berth_audit_records_total", "Audit records taken.")),
      lost_records_(metrics.GetCounter("berth_audit_lost_total",
                                       "Audit records lost because the queue was full.")),
      failures_(metrics.GetCounter("berth_audit_write_failures_total",
                                   "Failed attempts to write the audit log.")),
      scope_(loop) {}

AuditLevel AuditLog::LevelOf(const Identity& identity, const RequestInfo& request) const {
  if (policy_.has_value()) return policy_->LevelOf(identity, request);
  return IsAudited(request) ? AuditLevel::kMetadata : AuditLevel::kNone;
}

void AuditLog::Record(const AuditRecord& record) {
  loop_.Assert();
  if (is_closed_) return;
  const auto stage =
      record.stage == kAuditStarted ? AuditStage::kResponseStarted : AuditStage::kResponseComplete;
  if (policy_.has_value() && !policy_->Tells(record.identity, record.request, stage)) return;
  if (!HasRoom()) {
    if (lost_++ == 0) LOG_ERROR("audit log: the queue is full, records are being lost");
    lost_records_.Add();
    return;
  }
  if (lost_ > 0) AppendAuditGap(record.time, std::exchange(lost_, 0), pending_);
  AppendAuditLine(record, pending_);
  written_records_.Add();
  if (is_flushing_ || is_failing_) return;
  if (pending_.size() >= kFlushBytes) {
    StartFlush();
  } else if (timer_ == rt::TimerId()) {
    FlushAfter(kFlushInterval);
  }
}

void AuditLog::FlushAfter(Duration delay) {
  loop_.CancelTimer(timer_);
  timer_ = loop_.After("audit.flush", delay, [this] { StartFlush(); });
}

void AuditLog::StartFlush() {
  loop_.CancelTimer(timer_);
  timer_ = rt::TimerId();
  if (is_flushing_ || is_closed_) return;
  is_flushing_ = true;
  scope_.Spawn("audit.flush", Flush());
}

rt::Task<Status> AuditLog::Flush() {
  Status status;
  while (status.ok() && !pending_.empty()) status = co_await WriteBatch();
  is_flushing_ = false;
  if (!status.ok() && !is_closed_) FlushAfter(kRetryInterval);
  co_return OkStatus();  // WriteBatch has reported
}

rt::Task<Status> AuditLog::WriteBatch() {
  in_flight_ = std::exchange(pending_, std::string());
  auto write = [this] { return file_->Append(in_flight_); };
  auto job = pool_.Run("audit.write", write);
  Result<AuditFile::Outcome> outcome = co_await std::move(job);
  const size_t written = outcome.ok() ? outcome->written : 0;
  Status status = outcome.ok() ? outcome->status : outcome.status();
  if (written < in_flight_.size()) {
    // What the file has not taken stays in front, to the byte: no line is torn or doubled.
    pending_.insert(0, in_flight_, written, std::string::npos);
  }
  in_flight_.clear();
  if (!status.ok()) {
    failures_.Add();
    if (!is_failing_) LOG_ERROR("audit log: {}; trying again", status.message());
  }
  is_failing_ = !status.ok();
  co_return status;
}

rt::Task<Status> AuditLog::Close() {
  loop_.Assert();
  is_closed_ = true;
  loop_.CancelTimer(timer_);
  timer_ = rt::TimerId();
  CO_TRY_STATUS(co_await scope_.Join());
  if (lost_ > 0) AppendAuditGap(loop_.WallNow(), std::exchange(lost_, 0), pending_);
  if (!pending_.empty()) CO_TRY_STATUS(co_await WriteBatch());
  auto sync = [this] { return file_->Sync(); };
  auto job = pool_.Run("audit.sync", sync);
  co_return co_await std::move(job);
}

}  // namespace berth::apiserver
