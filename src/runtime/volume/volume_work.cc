// SPDX-License-Identifier: Apache-2.0
// What happens to disks behind the calls: one task per object.
#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/labels.h"
#include "rt/deadline.h"
#include "rt/sleep.h"
#include "runtime/volume/volume_host.h"

namespace berth::runtime {

using iri::ChangeType;
using iri::EventType;
using iri::ObjectKind;

namespace {

std::string_view ActionOf(Step step) {
  switch (step) {
    case Step::kMake: return "Make";
    case Step::kGrow: return "Grow";
    case Step::kRemove:
    case Step::kAbandon: return "Remove";
    case Step::kNone:
    case Step::kWait: break;
  }
  return "Wait";
}

}  // namespace

void VolumeHost::Tend(const VolumePtr& entry) {
  entry->nudge.Set();
  if (entry->is_tended || entry->is_gone) return;
  entry->is_tended = true;
  work_.Spawn("volume.tend", TendVolume(entry));
}

void VolumeHost::Tend(const SnapshotPtr& entry) {
  entry->nudge.Set();
  if (entry->is_tended || entry->is_gone) return;
  entry->is_tended = true;
  work_.Spawn("snapshot.tend", TendSnapshot(entry));
}

void VolumeHost::TendSource(std::string_view id) {
  if (const auto volume = volumes_.find(id); volume != volumes_.end()) Tend(volume->second);
  if (const auto snapshot = snapshots_.find(id); snapshot != snapshots_.end()) {
    Tend(snapshot->second);
  }
}

// Whether another disk is being made of this one.
bool VolumeHost::IsRead(std::string_view id) const {
  for (const auto& [other, entry] : volumes_) {
    const VolumeRecord& record = entry->record;
    if (record.object.spec.snapshot_id == id && !record.is_made()) return true;
  }
  for (const auto& [other, entry] : snapshots_) {
    const iri::VolumeSnapshot& snapshot = entry->record.object;
    if (snapshot.volume_id == id && snapshot.state == iri::SnapshotState::kPending) return true;
  }
  return false;
}

Circumstances VolumeHost::CircumstancesOf(const VolumeEntry& entry) const {
  return {.has_key = !entry.key.empty(), .is_read = IsRead(entry.record.object.metadata.id)};
}
Circumstances VolumeHost::CircumstancesOf(const SnapshotEntry& entry) const {
  return {.has_key = false, .is_read = IsRead(entry.record.object.metadata.id)};
}

rt::Task<Status> VolumeHost::Pause(std::shared_ptr<Worked> worked, Duration pause) {
  const Status waited = co_await rt::WithDeadline(worked->nudge.Wait(), pause);
  co_return waited.Is(Reason::kCancelled) ? waited : OkStatus();
}

rt::Task<Status> VolumeHost::TendVolume(VolumePtr entry) {
  rt::Context& context = co_await rt::CurrentContext();
  for (;;) {
    entry->nudge.Reset();  // whatever it was about is looked at now
    const Step step = NextStep(entry->record, CircumstancesOf(*entry));
    if (entry->is_gone || step == Step::kNone || step == Step::kWait) break;
    const Status done = co_await Perform(entry, step);
    if (context.cancelled()) co_return Cancelled();
    if (done.ok()) {
      entry->error.clear();
      entry->image_problem.clear();
      entry->backoff.Reset();
      continue;
    }
    if (done.Is(Reason::kCancelled)) continue;  // the making, for a deletion
    const iri::ObjectMetadata& metadata = entry->record.object.metadata;
    Failed(*entry, ObjectKind::kVolume, metadata, ActionOf(step), done);
    CO_TRY_STATUS(co_await Pause(entry, entry->backoff.Next(deps_.loop.random())));
  }
  entry->is_tended = false;
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::TendSnapshot(SnapshotPtr entry) {
  rt::Context& context = co_await rt::CurrentContext();
  for (;;) {
    entry->nudge.Reset();  // whatever it was about is looked at now
    const Step step = NextStep(entry->record, CircumstancesOf(*entry));
    if (entry->is_gone || step == Step::kNone || step == Step::kWait) break;
    const Status done = co_await Perform(entry, step);
    if (context.cancelled()) co_return Cancelled();
    if (done.ok() || done.Is(Reason::kCancelled)) continue;
    const iri::ObjectMetadata& metadata = entry->record.object.metadata;
    Failed(*entry, ObjectKind::kVolumeSnapshot, metadata, ActionOf(step), done);
    CO_TRY_STATUS(co_await Pause(entry, entry->backoff.Next(deps_.loop.random())));
  }
  entry->is_tended = false;
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::Perform(VolumePtr entry, Step step) {
  switch (step) {
    case Step::kMake: return MakeVolume(std::move(entry));
    case Step::kGrow: return GrowVolume(std::move(entry));
    case Step::kAbandon: return AbandonVolume(std::move(entry));
    default: return RemoveFiles(ShelfKind::kVolume, std::move(entry));
  }
}

rt::Task<Status> VolumeHost::Perform(SnapshotPtr entry, Step step) {
  if (step == Step::kMake) return MakeSnapshot(std::move(entry));
  return RemoveFiles(ShelfKind::kSnapshot, std::move(entry));
}

template <class Pointer>
rt::Task<Status> VolumeHost::RemoveFiles(ShelfKind kind, Pointer entry) {
  const iri::ObjectMetadata metadata = entry->record.object.metadata;
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  CO_TRY_STATUS(co_await deps_.shelf.Remove(kind, metadata.id));
  entry->is_gone = true;
  std::string source;
  if constexpr (std::is_same_v<Pointer, VolumePtr>) {
    source = entry->record.object.spec.snapshot_id;
    volumes_.erase(metadata.id);
    ForgetPullSecret(metadata);
    changes_.Add(ObjectKind::kVolume, ChangeType::kDeleted, metadata, "gone");
  } else {
    source = entry->record.object.volume_id;
    snapshots_.erase(metadata.id);
    changes_.Add(ObjectKind::kVolumeSnapshot, ChangeType::kDeleted, metadata, "gone");
  }
  TendSource(source);  // it may have waited for this one
  co_return co_await SettleBudget();
}

void VolumeHost::ForgetPullSecret(const iri::ObjectMetadata& metadata) {
  const std::string uid(LabelOf(metadata, iri::kVolumeUidLabel));
  deps_.images.SetPullSecret(uid, std::string());
}

rt::Task<Status> VolumeHost::AbandonVolume(VolumePtr entry) {
  const std::function<void(VolumeRecord&)> change =
      [now = deps_.loop.WallNow()](VolumeRecord& record) {
        record.object.metadata.deleted_at = now;
      };
  CO_TRY_STATUS(co_await Save(entry, change));
  Say(ObjectKind::kVolume,
      entry->record.object.metadata,
      EventType::kWarning,
      "KeyLost",
      "Make",
      "the runtime was restarted before the disk was made, and its key is kept nowhere: removed");
  changes_.Add(
      ObjectKind::kVolume, ChangeType::kChanged, entry->record.object.metadata, "deletion");
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::MakeVolume(VolumePtr entry) {
  rt::ChildContext child(co_await rt::CurrentContext());
  rt::Task<Result<int64_t>> making = MakeDisk(entry->record, entry->key);
  entry->making = &child;
  const Result<int64_t> bytes = co_await making.In(child.context());
  entry->making = nullptr;
  entry->waits.clear();
  entry->pull.End();
  if (!bytes.ok()) co_return bytes.status();
  const std::function<void(VolumeRecord&)> change = [made = *bytes](VolumeRecord& record) {
    record.disk_bytes = made;
    record.needs_key = false;
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  entry->key.clear();
  const iri::Volume& volume = entry->record.object;
  ForgetPullSecret(volume.metadata);
  Say(ObjectKind::kVolume,
      volume.metadata,
      EventType::kNormal,
      "Available",
      "Make",
      fmt::format("a disk of {} bytes", *bytes));
  changes_.Add(ObjectKind::kVolume, ChangeType::kChanged, volume.metadata, "state");
  TendSource(volume.spec.snapshot_id);
  co_return OkStatus();
}

// The size of the disk that is there then. A disk that is whole already was made by an earlier life
// that did not come to say so.
rt::Task<Result<int64_t>> VolumeHost::MakeDisk(VolumeRecord record, std::string key) {
  const std::string id = record.object.metadata.id;
  const DiskFormat format = record.format;
  CO_TRY(const DiskPresence presence, co_await deps_.shelf.Prepare(ShelfKind::kVolume, id, format));
  if (presence == DiskPresence::kAbsent) {
    const DiskFile part = deps_.shelf.PartOf(ShelfKind::kVolume, id, format);
    const Status filled = co_await FillDisk(std::move(record), part, std::move(key));
    if (!filled.ok()) {
      // Nothing of a failed attempt takes room until the next.
      rt::Context& context = co_await rt::CurrentContext();
      if (!context.cancelled()) {
        CO_TRY_STATUS(co_await deps_.shelf.Prepare(ShelfKind::kVolume, id, format));
      }
      co_return filled;
    }
    CO_TRY_STATUS(co_await deps_.shelf.Settle(ShelfKind::kVolume, id, format));
  }
  const DiskFile disk = deps_.shelf.DiskOf(ShelfKind::kVolume, id, format);
  co_return co_await deps_.disks.VirtualBytes(disk);
}

rt::Task<Status> VolumeHost::FillDisk(VolumeRecord record, DiskFile part, std::string key) {
  const int64_t bytes = WholeSectors(record.object.spec.storage_bytes);
  const iri::VolumeSpec& spec = record.object.spec;
  if (spec.image.empty() && spec.snapshot_id.empty()) {
    co_return co_await deps_.disks.Create(std::move(part), bytes, std::move(key));
  }
  DiskCopy copy;
  copy.target = part;
  copy.key = std::move(key);
  copy.bytes = bytes;
  const bool is_image = !spec.image.empty();
  if (is_image) {
    const std::string reference = record.object.spec.image;
    const Status filled = co_await FillFromImage(std::move(record), std::move(copy));
    if (!filled.ok()) co_return OfImage(filled, reference);
  } else {
    CO_TRY_STATUS(co_await FillFromDisk(std::move(record), std::move(copy)));
  }
  CO_TRY_STATUS(co_await deps_.disks.Grow(std::move(part), bytes));
  co_return OkStatus();
}

void VolumeHost::TellPull(ImageRequest& request, VolumePtr entry) {
  entry->pull = PullProgress(deps_.loop.Now(), options_.pull_interval);
  const auto changed = [this, entry] {
    const iri::ObjectMetadata& metadata = entry->record.object.metadata;
    changes_.Add(ObjectKind::kVolume, ChangeType::kChanged, metadata, "image");
  };
  request.progress = [this, entry, changed](int64_t bytes, int64_t of) {
    if (entry->pull.Note(bytes, of, deps_.loop.Now())) changed();
  };
  request.unpacking = [this, entry, changed](int64_t bytes, int64_t of) {
    if (entry->pull.NoteUnpacked(bytes, of, deps_.loop.Now())) changed();
  };
}

rt::Task<Status> VolumeHost::FillFromImage(VolumeRecord record, DiskCopy copy) {
  ImageRequest request;
  request.reference = record.object.spec.image;
  request.architecture = record.object.spec.image_architecture;
  request.namespace_ = LabelOf(record.object.metadata, iri::kVolumeNamespaceLabel);
  request.disk_bytes_max = copy.bytes;
  request.uid = LabelOf(record.object.metadata, iri::kVolumeUidLabel);
  const auto entry = volumes_.find(record.object.metadata.id);
  if (entry != volumes_.end()) TellPull(request, entry->second);
  CO_TRY(const image::ImageFiles files, co_await FetchImage(std::move(request)));
  const std::string name = "image " + Quote(record.object.spec.image);
  if (!files.disk.has_value()) {
    co_return BadRequest(name + ": a volume begins with a disk, and it has no layer of type " +
                         std::string(image::MediaTypeOf(image::Part::kRootDisk)));
  }
  copy.source = DiskFileOf(*files.disk);
  // Before any program that would believe what is written in it.
  const Result<int64_t> bytes = co_await deps_.disks.ForeignVirtualBytes(copy.source);
  if (!bytes.ok()) co_return bytes.status().Wrap(name);
  if (*bytes > copy.bytes) {
    co_return BadRequest(fmt::format(
        "{}: a disk of {} bytes does not fit into a volume of {}", name, *bytes, copy.bytes));
  }
  const Status copied = co_await deps_.disks.Copy(std::move(copy));
  co_return copied.Wrap(name);
}

rt::Task<Status> VolumeHost::FillFromDisk(VolumeRecord record, DiskCopy copy) {
  const iri::ObjectMetadata metadata = record.object.metadata;
  CO_TRY(const VolumePtr entry, FindVolume(metadata.id));
  const std::string source_id = record.object.spec.snapshot_id;
  if (const auto snapshot = FindSnapshot(source_id); snapshot.ok()) {
    copy.source = deps_.shelf.DiskOf(ShelfKind::kSnapshot, source_id, (*snapshot)->record.format);
  } else {
    CO_TRY(const VolumePtr volume, FindVolume(source_id));
    copy.source = deps_.shelf.DiskOf(ShelfKind::kVolume, source_id, volume->record.format);
  }
  if (copy.source.format == DiskFormat::kLuks && !copy.key.empty()) {
    // It is copied with the key that it has.
    std::string key = std::move(copy.key);
    copy.key.clear();
    CO_TRY_STATUS(co_await deps_.disks.Unlock(copy.source, std::move(key)));
  }
  Waits waits = ToldOf(ObjectKind::kVolume, entry, metadata);
  co_return co_await CopyDisk(std::move(copy), std::move(waits));
}

rt::Task<Status> VolumeHost::GrowVolume(VolumePtr entry) {
  const iri::ObjectMetadata metadata = entry->record.object.metadata;
  const int64_t bytes = WholeSectors(entry->record.object.spec.storage_bytes);
  const DiskFile disk = deps_.shelf.DiskOf(ShelfKind::kVolume, metadata.id, entry->record.format);
  CO_TRY(const Growth growth, co_await deps_.disks.Grow(disk, bytes));
  if (growth == Growth::kInUse) {
    // Whoever runs the guest grows the disk with it. If the guest ends before that, we do.
    if (!std::exchange(entry->grows_in_use, true)) {
      Say(ObjectKind::kVolume,
          metadata,
          EventType::kNormal,
          "GrowsInUse",
          "Grow",
          fmt::format("a guest uses the disk and grows it to {} bytes", bytes));
      changes_.Add(ObjectKind::kVolume, ChangeType::kChanged, metadata, "size");
    }
    co_return co_await Pause(entry, options_.in_use_look);
  }
  const std::function<void(VolumeRecord&)> change = [bytes](VolumeRecord& record) {
    record.disk_bytes = bytes;
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  entry->grows_in_use = false;
  Say(ObjectKind::kVolume,
      metadata,
      EventType::kNormal,
      "Grown",
      "Grow",
      fmt::format("a disk of {} bytes", bytes));
  changes_.Add(ObjectKind::kVolume, ChangeType::kChanged, metadata, "size");
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::MakeSnapshot(SnapshotPtr entry) {
  rt::ChildContext child(co_await rt::CurrentContext());
  rt::Task<Result<SnapshotCopy>> making = CopyVolume(entry->record);
  entry->making = &child;
  const Result<SnapshotCopy> copy = co_await making.In(child.context());
  entry->making = nullptr;
  entry->waits.clear();
  if (copy.status().Is(Reason::kCancelled)) co_return copy.status();
  // What a snapshot shows is one moment: a later attempt would show another.
  const std::function<void(SnapshotRecord&)> change = [&copy](SnapshotRecord& record) {
    record.object.state = copy.ok() ? iri::SnapshotState::kReady : iri::SnapshotState::kFailed;
    record.taken_bytes = copy.ok() ? copy->taken_bytes : 0;
    if (copy.ok()) {
      record.object.size_bytes = copy->disk_bytes;
    } else {
      record.object.metadata.annotations[std::string(iri::kProblemAnnotation)] =
          copy.status().message();
    }
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  const iri::VolumeSnapshot& snapshot = entry->record.object;
  if (copy.ok()) {
    Say(ObjectKind::kVolumeSnapshot,
        snapshot.metadata,
        EventType::kNormal,
        "Ready",
        "Make",
        fmt::format("{} bytes of volume {}", snapshot.size_bytes, snapshot.volume_id));
    changes_.Add(ObjectKind::kVolumeSnapshot, ChangeType::kChanged, snapshot.metadata, "state");
  } else {
    Failed(*entry, ObjectKind::kVolumeSnapshot, snapshot.metadata, "Make", copy.status());
  }
  TendSource(snapshot.volume_id);
  co_return OkStatus();
}

rt::Task<Result<VolumeHost::SnapshotCopy>> VolumeHost::CopyVolume(SnapshotRecord record) {
  const std::string id = record.object.metadata.id;
  const DiskFormat format = record.format;
  CO_TRY(const DiskPresence presence,
         co_await deps_.shelf.Prepare(ShelfKind::kSnapshot, id, format));
  if (presence == DiskPresence::kAbsent) {
    CO_TRY(const VolumePtr volume, FindVolume(record.object.volume_id));
    CO_TRY(const SnapshotPtr entry, FindSnapshot(id));
    Waits waits = ToldOf(ObjectKind::kVolumeSnapshot, entry, record.object.metadata);
    DiskCopy copy;
    copy.source = deps_.shelf.DiskOf(ShelfKind::kVolume, record.object.volume_id, format);
    copy.target = deps_.shelf.PartOf(ShelfKind::kSnapshot, id, format);
    for (;;) {
      // Its guest may grow it meanwhile.
      copy.bytes = std::max(record.object.size_bytes, ChargeOf(volume->record));
      const Status copied = co_await CopyDisk(copy, waits);
      if (copied.ok()) break;
      rt::Context& context = co_await rt::CurrentContext();
      if (!context.cancelled()) {
        CO_TRY_STATUS(co_await deps_.shelf.Prepare(ShelfKind::kSnapshot, id, format));
      }
      // A guest uses it and cannot copy it. That is over when its machine stops, and no moment of
      // the disk was taken yet.
      if (format != DiskFormat::kLuks || !copied.Is(Reason::kConflict)) co_return copied;
      waits(copied);
      CO_TRY_STATUS(co_await rt::Sleep(options_.in_use_look));
    }
    CO_TRY_STATUS(co_await deps_.shelf.Settle(ShelfKind::kSnapshot, id, format));
  }
  CO_TRY(const ShelfRoom room, co_await deps_.shelf.Room());
  const auto taken = room.taken.find({ShelfKind::kSnapshot, id});
  SnapshotCopy made;
  made.taken_bytes = taken == room.taken.end() ? 0 : taken->second;
  const DiskFile disk = deps_.shelf.DiskOf(ShelfKind::kSnapshot, id, format);
  CO_TRY(made.disk_bytes, co_await deps_.disks.VirtualBytes(disk));
  co_return made;
}

}  // namespace berth::runtime
