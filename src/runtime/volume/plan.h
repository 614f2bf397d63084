// SPDX-License-Identifier: Apache-2.0
// What is to be done next with a volume or a snapshot. Pure: the record and what is known beside it
// decide, so a runtime that was killed anywhere goes on where it was.
//
//   created -> making --------------------> made <--> growing
//                 |  key lost                 |
//                 v                           v
//              deleted ------------------> deleted -> (waits for readers) -> gone
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "runtime/volume/records.h"
#include "runtime/volume/volume_classes.h"

namespace berth::runtime {

enum class Step : uint8_t {
  kNone,
  kMake,     // the disk, then the record says so
  kGrow,     // the disk to the size of the spec
  kAbandon,  // it cannot be made any more: delete it, whoever wants it asks again
  kWait,     // somebody still reads it
  kRemove,   // disk, then record, then folder
};

struct Circumstances {
  bool has_key = false;  // the key of the request is still known
  bool is_read = false;  // another disk is being made from this one
};

Step NextStep(const VolumeRecord& record, const Circumstances& circumstances);
Step NextStep(const SnapshotRecord& record, const Circumstances& circumstances);

// What a new volume is made from.
struct DiskSource {
  enum class Kind : uint8_t { kNothing, kImage, kDisk } kind = Kind::kNothing;
  DiskFormat format = DiskFormat::kQcow2;  // of kDisk
  int64_t bytes = 0;                       // the same
};

// The record of a volume as requested, without id and times. The key is given back through `key`
// and is in nothing else. BadRequest names the field, the value and what is possible.
Result<VolumeRecord> NewVolumeRecord(iri::Volume wanted,
                                     const OfferedVolumeClass& offered,
                                     const DiskSource& source,
                                     std::string& key);

// The key of an encryption secret: kEncryptionKeyEntry, or its only entry. QEMU takes text only.
Result<std::string> KeyOf(const iri::SecretMap& encryption);

}  // namespace berth::runtime
