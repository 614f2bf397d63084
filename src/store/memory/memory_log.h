// SPDX-License-Identifier: Apache-2.0
// A MemoryLog is a RecordLog without a disk. What is durable lies in a MemoryDisk, which outlives
// it: opening a new store on the same disk is a restart, and what was still in flight is lost.
#pragma once

#include <map>
#include <memory>

#include "rt/loop.h"
#include "store/mvcc/record_log.h"

namespace berth::store {

struct MemoryDisk {
  std::map<Position, Record> records;
  std::map<LeaseId, Duration> leases;
  Revision compacted;
};

std::unique_ptr<RecordLog> MakeMemoryLog(rt::Loop& loop, std::shared_ptr<MemoryDisk> disk);

}  // namespace berth::store
