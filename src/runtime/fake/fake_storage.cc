// SPDX-License-Identifier: Apache-2.0
// Volumes, snapshots and buckets of a fake host, and what the host counts.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "iri/labels.h"
#include "runtime/fake/fake_host_state.h"

namespace berth::runtime {

using iri::ChangeType;
using iri::ObjectKind;

namespace {

template <class Table>
auto Find(Table& table, std::string_view id, std::string_view what)
    -> Result<typename Table::mapped_type*> {
  const auto found = table.find(id);
  if (found == table.end()) return NotFound(std::string(what) + " " + Quote(id) + " not found");
  return &found->second;
}

template <class Table>
const typename Table::mapped_type* FindByUid(const Table& table,
                                             std::string_view label,
                                             std::string_view uid) {
  if (uid.empty()) return nullptr;
  for (const auto& [id, entry] : table) {
    if (LabelOf(entry.object.metadata, label) == uid) return &entry;
  }
  return nullptr;
}

iri::ObjectMetadata NewMetadata(iri::ObjectMetadata metadata,
                                std::string id,
                                const FakeClock& clock) {
  metadata.id = std::move(id);
  metadata.generation = 1;
  metadata.created_at = clock.wall;
  metadata.deleted_at = WallTime();
  return metadata;
}

iri::Volume Shown(const FakeEntry<iri::Volume>& entry, const std::string& host) {
  iri::Volume shown = entry.object;
  shown.status = iri::VolumeStatus();
  if (entry.ready_at.has_value()) return shown;
  shown.status.state = iri::VolumeState::kAvailable;
  shown.status.storage_bytes = shown.spec.storage_bytes;
  shown.status.access.driver = "fake";
  shown.status.access.handle = shown.metadata.id;
  shown.status.access.attributes = {{"host", host}};
  shown.status.access.secret_data = {{"key", "key-of-" + shown.metadata.id}};
  return shown;
}
iri::VolumeSnapshot Shown(const FakeEntry<iri::VolumeSnapshot>& entry,
                          const std::string& /*host*/) {
  iri::VolumeSnapshot shown = entry.object;
  shown.state =
      entry.ready_at.has_value() ? iri::SnapshotState::kPending : iri::SnapshotState::kReady;
  return shown;
}
iri::Bucket Shown(const FakeEntry<iri::Bucket>& entry, const std::string& host) {
  iri::Bucket shown = entry.object;
  shown.access = iri::BucketAccess();
  shown.state = iri::BucketState::kPending;
  if (entry.ready_at.has_value()) return shown;
  shown.state = iri::BucketState::kAvailable;
  shown.access.endpoint = "https://" + host + ".buckets.invalid/" + shown.metadata.id;
  shown.access.secret_data = {{"AWS_ACCESS_KEY_ID", shown.metadata.id},
                              {"AWS_SECRET_ACCESS_KEY", "key-of-" + shown.metadata.id}};
  return shown;
}

template <class Classes>
Status CheckClass(const Classes& classes, const std::string& name, std::string_view what) {
  for (const auto& offered : classes) {
    if (offered.name == name) return OkStatus();
  }
  return BadRequest(std::string(what) + " class " + Quote(name) + " is not offered");
}

int64_t Scaled(int64_t amount, double factor) {
  return static_cast<int64_t>(static_cast<double>(amount) * factor);
}

iri::ResourceVector Storage(int64_t bytes) { return {{std::string(iri::kStorage), bytes}}; }

}  // namespace

Result<iri::Volume> FakeHostState::CreateVolume(const FakeClock& clock, iri::Volume volume) {
  Advance(clock);
  const std::string_view uid = LabelOf(volume.metadata, iri::kVolumeUidLabel);
  const auto* const there = FindByUid(volumes_, iri::kVolumeUidLabel, uid);
  if (IsIdempotent() && there != nullptr) return runtime::Shown(*there, options_.name);
  TRY_STATUS(CheckClass(options_.volume_classes, volume.spec.class_name, "volume"));
  if (volume.spec.storage_bytes <= 0) return BadRequest("a volume of 0 bytes");
  if (!volume.spec.snapshot_id.empty()) {
    TRY(const int64_t bytes, SourceBytes(volume.spec.snapshot_id));
    if (volume.spec.storage_bytes < bytes) {
      return BadRequest("volume of " + std::to_string(volume.spec.storage_bytes) +
                        " bytes is smaller than its source of " + std::to_string(bytes));
    }
  }
  TRY_STATUS(CheckRoom(Storage(volume.spec.storage_bytes), ""));
  FakeEntry<iri::Volume> made;
  made.object.metadata = NewMetadata(std::move(volume.metadata), NewId("v-"), clock);
  made.object.spec = std::move(volume.spec);
  made.ready_at = clock.now + options_.times.volume;
  const std::string id = made.object.metadata.id;
  const auto& kept = volumes_.emplace(id, std::move(made)).first->second;
  Changed(ObjectKind::kVolume, ChangeType::kCreated, kept.object.metadata, "created");
  return runtime::Shown(kept, options_.name);
}

Result<int64_t> FakeHostState::SourceBytes(std::string_view id) const {
  const auto volume = volumes_.find(id);
  // Others know snapshots only.
  if (options_.flavor == FakeFlavor::kBerth && volume != volumes_.end()) {
    if (volume->second.ready_at.has_value() || volume->second.gone_at.has_value()) {
      return Conflict("volume " + Quote(id) + " is not available");
    }
    return volume->second.object.spec.storage_bytes;
  }
  const auto snapshot = snapshots_.find(id);
  if (snapshot == snapshots_.end()) return NotFound("snapshot " + Quote(id) + " not found");
  return snapshot->second.object.size_bytes;
}

std::optional<Time> FakeHostState::ReadUntil(std::string_view id) const {
  std::optional<Time> last;
  for (const auto& [other, entry] : volumes_) {
    if (entry.object.spec.snapshot_id == id) last = std::max(last, entry.ready_at);
  }
  for (const auto& [other, entry] : snapshots_) {
    if (entry.object.volume_id == id) last = std::max(last, entry.ready_at);
  }
  return last;
}

Status FakeHostState::ExpandVolume(const FakeClock& clock,
                                   std::string_view id,
                                   int64_t storage_bytes) {
  Advance(clock);
  TRY(auto* const volume, Find(volumes_, id, "volume"));
  const int64_t has = volume->object.spec.storage_bytes;
  if (storage_bytes == has) return OkStatus();
  if (storage_bytes < has) {
    return {Reason::kInvalid,
            "volume " + Quote(id) + " of " + std::to_string(has) + " bytes cannot shrink to " +
                std::to_string(storage_bytes)};
  }
  TRY_STATUS(CheckRoom(Storage(storage_bytes - has), ""));
  volume->object.spec.storage_bytes = storage_bytes;
  ++volume->object.metadata.generation;
  Changed(ObjectKind::kVolume, ChangeType::kChanged, volume->object.metadata, "size");
  return OkStatus();
}

Status FakeHostState::DeleteVolume(const FakeClock& clock, std::string_view id) {
  Advance(clock);
  TRY(auto* const volume, Find(volumes_, id, "volume"));
  if (volume->gone_at.has_value()) return OkStatus();
  volume->object.metadata.deleted_at = clock.wall;
  const bool sticks = random_.Chance(options_.faults.delete_sticks);
  volume->gone_at = std::max(clock.now + (sticks ? options_.times.stuck : Duration()),
                             ReadUntil(id).value_or(clock.now));
  Changed(ObjectKind::kVolume, ChangeType::kChanged, volume->object.metadata, "deletion");
  Advance(clock);
  return OkStatus();
}

Result<iri::VolumeSnapshot> FakeHostState::CreateSnapshot(const FakeClock& clock,
                                                          iri::VolumeSnapshot snapshot) {
  Advance(clock);
  const std::string_view uid = LabelOf(snapshot.metadata, iri::kSnapshotUidLabel);
  const auto* const there = FindByUid(snapshots_, iri::kSnapshotUidLabel, uid);
  if (IsIdempotent() && there != nullptr) return runtime::Shown(*there, options_.name);
  TRY(const auto* const source, Find(volumes_, snapshot.volume_id, "volume"));
  const int64_t bytes = source->object.spec.storage_bytes;
  TRY_STATUS(CheckRoom(Storage(bytes), ""));
  FakeEntry<iri::VolumeSnapshot> made;
  made.object.metadata = NewMetadata(std::move(snapshot.metadata), NewId("s-"), clock);
  made.object.volume_id = std::move(snapshot.volume_id);
  made.object.size_bytes = bytes;
  made.ready_at = clock.now + options_.times.snapshot;
  const std::string id = made.object.metadata.id;
  const auto& kept = snapshots_.emplace(id, std::move(made)).first->second;
  Changed(ObjectKind::kVolumeSnapshot, ChangeType::kCreated, kept.object.metadata, "created");
  return runtime::Shown(kept, options_.name);
}

Status FakeHostState::DeleteSnapshot(const FakeClock& clock, std::string_view id) {
  Advance(clock);
  TRY(auto* const snapshot, Find(snapshots_, id, "snapshot"));
  snapshot->object.metadata.deleted_at = clock.wall;
  snapshot->gone_at = std::max(clock.now, ReadUntil(id).value_or(clock.now));
  Advance(clock);
  return OkStatus();
}

Result<iri::Bucket> FakeHostState::CreateBucket(const FakeClock& clock, iri::Bucket bucket) {
  Advance(clock);
  const std::string_view uid = LabelOf(bucket.metadata, iri::kBucketUidLabel);
  const auto* const there = FindByUid(buckets_, iri::kBucketUidLabel, uid);
  if (IsIdempotent() && there != nullptr) return runtime::Shown(*there, options_.name);
  TRY_STATUS(CheckClass(options_.bucket_classes, bucket.class_name, "bucket"));
  FakeEntry<iri::Bucket> made;
  made.object.metadata = NewMetadata(std::move(bucket.metadata), NewId("b-"), clock);
  made.object.class_name = std::move(bucket.class_name);
  made.ready_at = clock.now + options_.times.volume;
  const std::string id = made.object.metadata.id;
  const auto& kept = buckets_.emplace(id, std::move(made)).first->second;
  Changed(ObjectKind::kBucket, ChangeType::kCreated, kept.object.metadata, "created");
  return runtime::Shown(kept, options_.name);
}

Status FakeHostState::DeleteBucket(const FakeClock& clock, std::string_view id) {
  Advance(clock);
  TRY(auto* const bucket, Find(buckets_, id, "bucket"));
  bucket->object.metadata.deleted_at = clock.wall;
  bucket->gone_at = clock.now;
  Advance(clock);
  return OkStatus();
}

std::vector<iri::Volume> FakeHostState::ShowVolumes(const FakeClock& clock,
                                                    const iri::ObjectFilter& filter) {
  Advance(clock);
  std::vector<iri::Volume> shown;
  for (const auto& [id, entry] : volumes_) {
    if (Matches(filter, entry.object.metadata) && !Hides()) {
      shown.push_back(runtime::Shown(entry, options_.name));
    }
  }
  return shown;
}
std::vector<iri::VolumeSnapshot> FakeHostState::ShowSnapshots(const FakeClock& clock,
                                                              const iri::ObjectFilter& filter) {
  Advance(clock);
  std::vector<iri::VolumeSnapshot> shown;
  for (const auto& [id, entry] : snapshots_) {
    if (Matches(filter, entry.object.metadata) && !Hides()) {
      shown.push_back(runtime::Shown(entry, options_.name));
    }
  }
  return shown;
}
std::vector<iri::Bucket> FakeHostState::ShowBuckets(const FakeClock& clock,
                                                    const iri::ObjectFilter& filter) {
  Advance(clock);
  std::vector<iri::Bucket> shown;
  for (const auto& [id, entry] : buckets_) {
    if (Matches(filter, entry.object.metadata) && !Hides()) {
      shown.push_back(runtime::Shown(entry, options_.name));
    }
  }
  return shown;
}

iri::ResourceVector FakeHostState::Used() const {
  iri::ResourceVector used;
  for (const auto& [name, amount] : options_.capacity) used[name] = 0;
  for (const auto& [id, machine] : machines_) {
    for (const auto& [name, amount] : Needs(machine.object)) used[name] += amount;
  }
  int64_t bytes = 0;
  for (const auto& [id, volume] : volumes_) bytes += volume.object.spec.storage_bytes;
  for (const auto& [id, snapshot] : snapshots_) bytes += snapshot.object.size_bytes;
  if (bytes > 0) used[std::string(iri::kStorage)] += bytes;
  return used;
}

std::vector<iri::MachineClassStatus> FakeHostState::MachineClasses() const {
  std::vector<iri::MachineClassStatus> classes;
  for (const iri::MachineClass& offered : options_.machine_classes) {
    int64_t quantity = std::numeric_limits<int64_t>::max();
    for (const auto& [name, amount] : ToResourceVector(offered)) {
      if (amount <= 0) continue;
      const auto total = options_.capacity.find(name);
      const int64_t has = total == options_.capacity.end() ? 0 : total->second;
      quantity = std::min(quantity, Scaled(has, options_.lies.capacity_factor) / amount);
    }
    classes.push_back({.machine_class = offered, .quantity = quantity});
  }
  return classes;
}

std::vector<iri::VolumeClassStatus> FakeHostState::VolumeClasses() const {
  const auto total = options_.capacity.find(iri::kStorage);
  const int64_t bytes = total == options_.capacity.end() ? 0 : total->second;
  std::vector<iri::VolumeClassStatus> classes;
  for (const iri::VolumeClass& offered : options_.volume_classes) {
    classes.push_back(
        {.volume_class = offered, .quantity = Scaled(bytes, options_.lies.capacity_factor)});
  }
  return classes;
}

iri::HostCapacity FakeHostState::Capacity(const FakeClock& clock) {
  Advance(clock);
  // A guest uses a quarter of its cores and half of its memory, and moves a steady trickle.
  constexpr int64_t kCpuPart = 4;
  constexpr int64_t kMemoryPart = 2;
  constexpr int64_t kBytesPerSecond = 10'000;
  iri::HostCapacity capacity;
  for (const auto& [name, amount] : options_.capacity) {
    capacity.total[name] = Scaled(amount, options_.lies.capacity_factor);
  }
  capacity.used = Used();
  capacity.boot_id = boot_id_;
  capacity.facts = {{"cpu-model", "Fake"}, {"hostname", options_.name}};
  int64_t cpu_load = 0;
  int64_t memory_load = 0;
  int64_t disk_load = 0;
  for (const auto& [id, machine] : machines_) {
    if (!machine.guest.alive()) continue;
    iri::ResourceVector needs = Needs(machine.object);
    const Duration ran = clock.now - machine.guest.started;
    const int64_t bytes = ran.seconds() * kBytesPerSecond;
    const int64_t cpu = needs[std::string(iri::kCpu)] / kCpuPart;
    const int64_t memory = needs[std::string(iri::kMemory)] / kMemoryPart;
    cpu_load += cpu;
    memory_load += memory;
    disk_load += needs[std::string(iri::kStorage)];
    capacity.instances.push_back(
        {.kind = ObjectKind::kMachine,
         .id = id,
         .uid = std::string(LabelOf(machine.object.metadata, iri::kMachineUidLabel)),
         .cpu_time = Duration::Millis(ran.seconds() * cpu),
         .memory_bytes = memory,
         .disk_bytes = needs[std::string(iri::kStorage)],
         .disk_read_bytes = bytes,
         .disk_written_bytes = bytes / 2,
         .network_received_bytes = bytes,
         .network_sent_bytes = bytes / 2});
  }
  for (const auto& [id, volume] : volumes_) {
    disk_load += volume.object.spec.storage_bytes;
    capacity.instances.push_back(
        {.kind = ObjectKind::kVolume,
         .id = id,
         .uid = std::string(LabelOf(volume.object.metadata, iri::kVolumeUidLabel)),
         .cpu_time = {},
         .disk_bytes = volume.object.spec.storage_bytes});
  }
  capacity.load = {{std::string(iri::kCpu), cpu_load},
                   {std::string(iri::kMemory), memory_load},
                   {std::string(iri::kStorage), disk_load}};
  return capacity;
}

}  // namespace berth::runtime
