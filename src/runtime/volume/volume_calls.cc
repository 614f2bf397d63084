// SPDX-License-Identifier: Apache-2.0
// What callers ask of volumes and snapshots: check, write down, answer.
#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "runtime/volume/volume_host.h"

namespace berth::runtime {

using iri::ChangeType;
using iri::ObjectKind;

namespace {

// The object that a uid label names, or null.
template <class Table>
auto OfUid(const Table& table, std::string_view label, std::string_view uid) ->
    typename Table::mapped_type {
  if (uid.empty()) return nullptr;
  for (const auto& [id, entry] : table) {
    if (LabelOf(entry->record.object.metadata, label) == uid) return entry;
  }
  return nullptr;
}

}  // namespace

Result<VolumeHost::VolumePtr> VolumeHost::FindVolume(std::string_view id) const {
  const auto found = volumes_.find(id);
  if (found == volumes_.end()) return NotFound("volume " + Quote(id) + " not found");
  return found->second;
}

Result<VolumeHost::SnapshotPtr> VolumeHost::FindSnapshot(std::string_view id) const {
  const auto found = snapshots_.find(id);
  if (found == snapshots_.end()) return NotFound("snapshot " + Quote(id) + " not found");
  return found->second;
}

template <class Pointer, class Record>
rt::Task<Status> VolumeHost::SaveRecord(ShelfKind kind,
                                        Pointer entry,
                                        std::function<void(Record&)> change) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (entry->is_gone) co_return NotFound(entry->record.object.metadata.id + " is gone");
  Record next = entry->record;
  change(next);
  CO_TRY_STATUS(co_await deps_.shelf.Put(kind, next.object.metadata.id, ToText(next)));
  // A deletion that a full disk did not let be written stays.
  if (entry->record.is_deleted()) next.object.metadata = entry->record.object.metadata;
  entry->record = std::move(next);
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::Save(VolumePtr entry, std::function<void(VolumeRecord&)> change) {
  return SaveRecord(ShelfKind::kVolume, std::move(entry), std::move(change));
}
rt::Task<Status> VolumeHost::Save(SnapshotPtr entry, std::function<void(SnapshotRecord&)> change) {
  return SaveRecord(ShelfKind::kSnapshot, std::move(entry), std::move(change));
}

iri::Volume VolumeHost::Shown(const VolumeEntry& entry) const {
  const VolumeRecord& record = entry.record;
  iri::Volume shown = record.object;
  if (!record.is_made()) {
    shown.status.state =
        entry.error.empty() ? iri::VolumeState::kPending : iri::VolumeState::kError;
    iri::StringMap& annotations = shown.metadata.annotations;
    if (!entry.error.empty()) annotations[std::string(iri::kProblemAnnotation)] = entry.error;
    if (!entry.image_problem.empty()) {
      annotations[std::string(iri::kImageProblemAnnotation)] = entry.image_problem;
    } else if (entry.error.empty() && !entry.pull.text().empty()) {
      annotations[std::string(iri::kImageProblemAnnotation)] = kPullingReason;
      annotations[std::string(iri::kProblemAnnotation)] = entry.pull.text();
    } else if (entry.error.empty() && !entry.waits.empty()) {
      annotations[std::string(iri::kProblemAnnotation)] = entry.waits;
    }
    return shown;
  }
  shown.status.state = iri::VolumeState::kAvailable;
  shown.status.storage_bytes =
      entry.grows_in_use ? WholeSectors(shown.spec.storage_bytes) : record.disk_bytes;
  iri::VolumeAccess& access = shown.status.access;
  access.driver = iri::kFileDriver;
  access.handle = shown.metadata.id;
  const DiskFile disk = deps_.shelf.DiskOf(ShelfKind::kVolume, shown.metadata.id, record.format);
  access.attributes = {
      {std::string(iri::kPathAttribute), disk.path},
      {std::string(iri::kFormatAttribute), std::string(DiskFormatName(record.format))}};
  if (const auto* const offered = FindClass(options_.classes, shown.spec.class_name)) {
    access.attributes[std::string(iri::kTpsAttribute)] = std::to_string(offered->volume_class.tps);
    access.attributes[std::string(iri::kIopsAttribute)] =
        std::to_string(offered->volume_class.iops);
  }
  return shown;
}

iri::VolumeSnapshot VolumeHost::Shown(const SnapshotEntry& entry) {
  iri::VolumeSnapshot shown = entry.record.object;
  const bool is_pending = shown.state == iri::SnapshotState::kPending;
  if (is_pending && !entry.waits.empty()) {
    shown.metadata.annotations[std::string(iri::kProblemAnnotation)] = entry.waits;
  }
  return shown;
}

rt::Task<Result<std::vector<iri::Volume>>> VolumeHost::ListVolumes(iri::ObjectFilter filter) {
  std::vector<iri::Volume> listed;
  for (const auto& [id, entry] : volumes_) {
    if (Matches(filter, entry->record.object.metadata)) listed.push_back(Shown(*entry));
  }
  co_return listed;
}

rt::Task<Result<std::vector<iri::VolumeSnapshot>>> VolumeHost::ListVolumeSnapshots(
    iri::ObjectFilter filter) {
  std::vector<iri::VolumeSnapshot> listed;
  for (const auto& [id, entry] : snapshots_) {
    if (Matches(filter, entry->record.object.metadata)) listed.push_back(Shown(*entry));
  }
  co_return listed;
}

// A snapshot, or a volume of this host: then the new one is its clone.
Result<DiskSource> VolumeHost::SourceOf(const iri::VolumeSpec& spec) const {
  DiskSource source;
  if (!spec.image.empty()) {
    TRY_STATUS(deps_.images.Check(spec.image));
    source.kind = DiskSource::Kind::kImage;
  }
  if (spec.snapshot_id.empty()) return source;
  source.kind = DiskSource::Kind::kDisk;
  if (const auto volume = volumes_.find(spec.snapshot_id); volume != volumes_.end()) {
    const VolumeRecord& record = volume->second->record;
    if (!record.is_made() || record.is_deleted()) {
      return Conflict("volume " + Quote(spec.snapshot_id) + " is not available");
    }
    source.format = record.format;
    source.bytes = record.disk_bytes;
    return source;
  }
  TRY(const SnapshotPtr snapshot, FindSnapshot(spec.snapshot_id));
  const SnapshotRecord& record = snapshot->record;
  if (record.object.state != iri::SnapshotState::kReady || record.is_deleted()) {
    return Conflict("snapshot " + Quote(spec.snapshot_id) + " is not ready");
  }
  source.format = record.format;
  source.bytes = record.object.size_bytes;
  return source;
}

rt::Task<Result<iri::Volume>> VolumeHost::CreateVolume(iri::Volume volume) {
  CO_TRY(const rt::Gate::Permit permit, co_await admission_.Enter());
  const std::string uid(LabelOf(volume.metadata, iri::kVolumeUidLabel));
  const VolumePtr there = OfUid(volumes_, iri::kVolumeUidLabel, uid);
  if (there != nullptr) co_return Shown(*there);
  const OfferedVolumeClass* const offered = FindClass(options_.classes, volume.spec.class_name);
  if (offered == nullptr) {
    co_return BadRequest("volume class " + Quote(volume.spec.class_name) + " is not offered");
  }
  CO_TRY(const DiskSource source, SourceOf(volume.spec));
  auto entry = std::make_shared<VolumeEntry>(options_.retry);
  VolumeRecord& record = entry->record;
  CO_TRY(record, NewVolumeRecord(std::move(volume), *offered, source, entry->key));
  CO_TRY_STATUS(CheckCount());
  const ClaimedRoom claimed(claimed_);
  CO_TRY_STATUS(co_await CheckRoomFor(ChargeOf(record), "a volume"));
  record.object.metadata = NewMetadata(std::move(record.object.metadata), "v-");
  const std::string id = record.object.metadata.id;
  CO_TRY_STATUS(co_await deps_.shelf.Put(ShelfKind::kVolume, id, ToText(record)));
  volumes_.emplace(id, entry);
  changes_.Add(ObjectKind::kVolume, ChangeType::kCreated, record.object.metadata, "created");
  const iri::Volume made = Shown(*entry);
  Tend(entry);
  co_return made;
}

rt::Task<Status> VolumeHost::SetPullSecret(iri::PullSecret secret) {
  if (!deps_.images.SetPullSecret(secret.uid, std::move(secret.docker_config))) {
    co_return OkStatus();
  }
  const VolumePtr waiting = OfUid(volumes_, iri::kVolumeUidLabel, secret.uid);
  if (waiting != nullptr && !waiting->record.is_made()) Tend(waiting);
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::ExpandVolume(std::string id, int64_t storage_bytes) {
  CO_TRY(const rt::Gate::Permit permit, co_await admission_.Enter());
  CO_TRY(const VolumePtr entry, FindVolume(id));
  const int64_t has = entry->record.object.spec.storage_bytes;
  if (entry->record.is_deleted()) co_return Conflict("volume " + Quote(id) + " is being deleted");
  if (storage_bytes == has) co_return OkStatus();
  if (storage_bytes < has || storage_bytes > kVolumeBytesMax) {
    co_return Status(
        Reason::kInvalid,
        fmt::format("volume {} of {} bytes cannot become one of {}: expected up to {}, never less",
                    Quote(id),
                    has,
                    storage_bytes,
                    kVolumeBytesMax));
  }
  const int64_t more = WholeSectors(storage_bytes) - ChargeOf(entry->record);
  const ClaimedRoom claimed(claimed_);
  CO_TRY_STATUS(co_await CheckRoomFor(std::max<int64_t>(more, 0), "the growth of volume " + id));
  const std::function<void(VolumeRecord&)> change = [storage_bytes](VolumeRecord& record) {
    record.object.spec.storage_bytes = storage_bytes;
    ++record.object.metadata.generation;
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  changes_.Add(ObjectKind::kVolume, ChangeType::kChanged, entry->record.object.metadata, "size");
  Tend(entry);
  co_return OkStatus();
}

template <class Pointer>
rt::Task<Status> VolumeHost::Delete(ObjectKind kind, Pointer entry) {
  using Record = decltype(entry->record);
  if (entry->record.is_deleted()) co_return OkStatus();
  const std::function<void(Record&)> change = [now = deps_.loop.WallNow()](Record& record) {
    if (!record.is_deleted()) record.object.metadata.deleted_at = now;
  };
  const Status saved = co_await Save(entry, change);
  if (entry->is_gone) co_return OkStatus();
  // On a full disk it cannot be written down; it goes nevertheless, because that makes room.
  if (saved.Is(Reason::kTooManyRequests)) {
    change(entry->record);
  } else if (!saved.ok()) {
    co_return saved;
  }
  changes_.Add(kind, ChangeType::kChanged, entry->record.object.metadata, "deletion");
  if (entry->making != nullptr) entry->making->Cancel();
  Tend(entry);
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::DeleteVolume(std::string id) {
  CO_TRY(const VolumePtr entry, FindVolume(id));
  co_return co_await Delete(ObjectKind::kVolume, entry);
}

rt::Task<Status> VolumeHost::DeleteVolumeSnapshot(std::string id) {
  CO_TRY(const SnapshotPtr entry, FindSnapshot(id));
  co_return co_await Delete(ObjectKind::kVolumeSnapshot, entry);
}

rt::Task<Result<iri::VolumeSnapshot>> VolumeHost::CreateVolumeSnapshot(
    iri::VolumeSnapshot snapshot) {
  CO_TRY(const rt::Gate::Permit permit, co_await admission_.Enter());
  const std::string uid(LabelOf(snapshot.metadata, iri::kSnapshotUidLabel));
  const SnapshotPtr there = OfUid(snapshots_, iri::kSnapshotUidLabel, uid);
  if (there != nullptr) co_return Shown(*there);
  CO_TRY(const VolumePtr source, FindVolume(snapshot.volume_id));
  auto entry = std::make_shared<SnapshotEntry>(options_.retry);
  SnapshotRecord& record = entry->record;
  record.object = std::move(snapshot);
  record.object.state = iri::SnapshotState::kPending;
  record.object.size_bytes = source->record.disk_bytes;
  record.format = source->record.format;
  CO_TRY_STATUS(CheckCount());
  const ClaimedRoom claimed(claimed_);
  CO_TRY_STATUS(co_await CheckRoomFor(record.object.size_bytes, "a snapshot"));
  if (!source->record.is_made() || source->record.is_deleted()) {
    co_return Conflict("volume " + Quote(record.object.volume_id) + " is not available");
  }
  record.object.metadata = NewMetadata(std::move(record.object.metadata), "s-");
  const std::string id = record.object.metadata.id;
  CO_TRY_STATUS(co_await deps_.shelf.Put(ShelfKind::kSnapshot, id, ToText(record)));
  snapshots_.emplace(id, entry);
  changes_.Add(
      ObjectKind::kVolumeSnapshot, ChangeType::kCreated, record.object.metadata, "created");
  iri::VolumeSnapshot made = record.object;
  Tend(entry);
  co_return made;
}

}  // namespace berth::runtime
