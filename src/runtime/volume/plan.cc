// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/plan.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "iri/local_disk.h"
#include "runtime/volume/budget.h"

namespace berth::runtime {
namespace {

constexpr size_t kKeyBytesMax = 512;  // a LUKS passphrase of QEMU

}  // namespace

Step NextStep(const VolumeRecord& record, const Circumstances& circumstances) {
  if (record.is_deleted()) return circumstances.is_read ? Step::kWait : Step::kRemove;
  if (!record.is_made()) {
    return record.needs_key && !circumstances.has_key ? Step::kAbandon : Step::kMake;
  }
  const bool is_small = record.disk_bytes < WholeSectors(record.object.spec.storage_bytes);
  return is_small ? Step::kGrow : Step::kNone;
}

Step NextStep(const SnapshotRecord& record, const Circumstances& circumstances) {
  if (record.is_deleted()) return circumstances.is_read ? Step::kWait : Step::kRemove;
  return record.object.state == iri::SnapshotState::kPending ? Step::kMake : Step::kNone;
}

Result<std::string> KeyOf(const iri::SecretMap& encryption) {
  auto entry = encryption.find(iri::kEncryptionKeyEntry);
  if (entry == encryption.end()) {
    if (encryption.size() != 1) {
      return BadRequest(fmt::format("encryption: {} entries, none of them is {}",
                                    encryption.size(),
                                    iri::kEncryptionKeyEntry));
    }
    entry = encryption.begin();
  }
  const std::string& key = entry->second;
  if (key.empty() || key.size() > kKeyBytesMax) {
    return BadRequest(
        fmt::format("encryption: a key of {} bytes, expected 1 to {}", key.size(), kKeyBytesMax));
  }
  if (!IsValidUtf8(key) || key.find('\0') != std::string::npos) {
    return BadRequest("encryption: the key is not text; write it in base64");
  }
  return key;
}

Result<VolumeRecord> NewVolumeRecord(iri::Volume wanted,
                                     const OfferedVolumeClass& offered,
                                     const DiskSource& source,
                                     std::string& key) {
  iri::VolumeSpec& spec = wanted.spec;
  if (spec.storage_bytes <= 0 || spec.storage_bytes > kVolumeBytesMax) {
    return BadRequest(
        fmt::format("storage_bytes {}: expected 1 to {}", spec.storage_bytes, kVolumeBytesMax));
  }
  if (!spec.image.empty() && !spec.snapshot_id.empty()) {
    return BadRequest("volume_data_source: an image and a snapshot, expected one of them");
  }
  const bool is_copy = source.kind == DiskSource::Kind::kDisk;
  if (is_copy && WholeSectors(spec.storage_bytes) < source.bytes) {
    return BadRequest(fmt::format("a volume of {} bytes is smaller than its source {} of {}",
                                  spec.storage_bytes,
                                  Quote(spec.snapshot_id),
                                  source.bytes));
  }
  const bool is_luks_copy = is_copy && source.format == DiskFormat::kLuks;
  VolumeRecord record;
  record.format = offered.format;
  if (!spec.encryption.empty()) {
    TRY(key, KeyOf(spec.encryption));
    record.format = DiskFormat::kLuks;
    // The copy of an encrypted disk keeps its key; one that was given anyway is checked first.
    record.needs_key = true;
  } else if (is_luks_copy) {
    record.format = DiskFormat::kLuks;
  }
  spec.encryption.clear();
  wanted.status = iri::VolumeStatus();
  record.object = std::move(wanted);
  return record;
}

}  // namespace berth::runtime
