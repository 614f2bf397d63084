// SPDX-License-Identifier: Apache-2.0
// A Record keeps a RecordState on a Disk: an append-only log that is written anew when most of it
// is history. Changes that come while one is being written share the next write. On-loop only.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "base/result.h"
#include "poollet/disk/disk.h"
#include "poollet/record/state.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::poollet {

inline constexpr std::string_view kRecordFile = "record";
// 10,000 changes of 4 KiB wait at most while the disk is slow; then writers are refused.
inline constexpr size_t kRecordQueueMax = 10'000;
// Below this a rewrite costs more than it saves.
inline constexpr size_t kRecordRewriteMin = size_t{256} * 1024;

class Record {
 public:
  // Reads what is there, or begins. Invalid if the file is damaged in the middle: nothing is
  // guessed. The disk outlives the record.
  static rt::Task<Result<std::unique_ptr<Record>>> Open(rt::Loop& loop, Disk& disk);

  // What is durable. In the order of the writes.
  const RecordState& state() const { return state_; }

  // Ok once the change is durable and in state(). An error: it is in neither, and later ones may
  // work. A cancelled write may still become durable.
  rt::Task<Status> Write(RecordChange change);

  // Waits for writes in progress.
  rt::Task<Status> Close();
  // Gives up what is in progress, as a crash would.
  rt::Task<Status> Abandon();

 private:
  struct Pending {
    RecordChange change;
    rt::Event done;
    Status status;
  };
  Record(rt::Loop& loop, Disk& disk, RecordState state, size_t file_bytes);
  rt::Task<Status> Flush();
  rt::Task<Status> WriteOnce(const RecordChange* change);
  rt::Task<Status> Rewrite(RecordState next);

  Disk& disk_;
  RecordState state_;
  size_t file_bytes_;
  size_t rewritten_bytes_;  // of the file when it was last written as a whole
  bool damaged_ = false;    // the end of the file is not known: rewrite it first
  bool flushing_ = false;
  std::deque<std::shared_ptr<Pending>> queue_;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
