// SPDX-License-Identifier: Apache-2.0
// The AuditLog takes records on the API server's loop and brings them to a file in batches.
//
// A record is in the operating system's hands at most kFlushInterval after Record(), and durable on
// Close() and when a file is set aside: a crash of the server loses at most that interval, a power
// cut what the kernel had not written yet. An fsync per record would double the cost of every
// write.
//
// The queue is bounded. While the disk does not take records, they are kept; once kPendingMax is
// reached, new ones are lost, counted (berth_audit_lost_total), logged, and the log itself says how
// many are missing where. Requests go on: a full disk stops writes at the store anyway, and reads
// must remain possible to repair it. Who prefers to refuse asks HasRoom() first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apiserver/audit/audit_file.h"
#include "apiserver/audit/audit_policy.h"
#include "apiserver/audit/audit_record.h"
#include "base/metrics.h"
#include "base/result.h"
#include "rt/blocking_pool.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::apiserver {

class AuditLog {
 public:
  static constexpr Duration kFlushInterval = Duration::Millis(100);
  static constexpr Duration kRetryInterval = Duration::Seconds(1);
  // 256 KiB are about 600 records: worth a write of their own.
  static constexpr size_t kFlushBytes = 256 << 10;
  // 4 MiB are about 10,000 records; as much again may be on its way to the file.
  static constexpr size_t kPendingMax = 4 << 20;

  // Opens the file (this blocks). The pool outlives the log.
  static Result<std::unique_ptr<AuditLog>> Open(AuditFile::Options options,
                                                rt::Loop& loop,
                                                rt::BlockingPool& pool,
                                                metrics::Registry& metrics,
                                                std::optional<AuditPolicy> policy = {});
  // REQUIRES: Close() was awaited.
  ~AuditLog() = default;
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // How much of a request is recorded: what the policy says; without one, kMetadata of what
  // IsAudited() names.
  AuditLevel LevelOf(const Identity& identity, const RequestInfo& request) const;
  // Takes a record, unless the policy does not want it. On-loop only; never blocks, costs one to
  // two microseconds.
  void Record(const AuditRecord& record);
  bool HasRoom() const { return pending_.size() < kPendingMax; }

  // Brings everything to the disk. Records that come later are not written.
  rt::Task<Status> Close();

 private:
  AuditLog(std::unique_ptr<AuditFile> file,
           rt::Loop& loop,
           rt::BlockingPool& pool,
           metrics::Registry& metrics,
           std::optional<AuditPolicy> policy);
  void FlushAfter(Duration delay);
  void StartFlush();
  rt::Task<Status> Flush();
  rt::Task<Status> WriteBatch();

  const std::unique_ptr<AuditFile> file_;
  const std::optional<AuditPolicy> policy_;
  rt::Loop& loop_;
  rt::BlockingPool& pool_;
  metrics::Counter& written_records_;
  metrics::Counter& lost_records_;
  metrics::Counter& failures_;

  std::string pending_;
  std::string in_flight_;  // touched by the pool's thread while a batch is being written
  uint64_t lost_ = 0;      // since the last line
  bool is_flushing_ = false;
  bool is_closed_ = false;
  bool is_failing_ = false;
  rt::TimerId timer_;
  rt::TaskScope scope_;
};

}  // namespace berth::apiserver
