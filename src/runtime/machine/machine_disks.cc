// SPDX-License-Identifier: Apache-2.0
// Local disks and what fills them. An image takes its time, and nobody waits for it who does not
// need it: a machine is changed, switched off and deleted while its disks are made.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "iri/labels.h"
#include "rt/child_context.h"
#include "rt/deadline.h"
#include "rt/join_all.h"
#include "runtime/machine/machine_host.h"
#include "runtime/volume/plan.h"

namespace berth::runtime {
namespace {

bool Names(const MachineRecord& record, const iri::MachineVolume& volume) {
  const std::vector<iri::MachineVolume>& volumes = record.object.spec.volumes;
  return std::ranges::find(volumes, volume) != volumes.end();
}

}  // namespace

bool MachineHost::WantsDisks(const Entry& entry) {
  const bool on = entry.record.object.spec.power == iri::Power::kOn;
  return on && !entry.record.is_deleted() && !entry.is_gone;
}

void MachineHost::CancelMaking(Entry& entry) {
  if (entry.maker != nullptr) entry.maker->Cancel();
}

template <class T>
rt::Task<T> MachineHost::WhileWanted(Pointer entry, rt::Task<T> part) {
  if (!WantsDisks(*entry)) co_return T(Cancelled());
  rt::ChildContext child(co_await rt::CurrentContext());
  entry->maker = &child;
  T done = co_await part.In(child.context());
  entry->maker = nullptr;
  co_return done;
}

rt::Task<Status> MachineHost::MakeDisks(Pointer entry) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->making.Enter());
  const std::vector<iri::MachineVolume> volumes = entry->record.object.spec.volumes;
  Status all;
  for (const iri::MachineVolume& volume : volumes) {
    if (!volume.local_disk.has_value()) continue;
    Status made = co_await CountImageDisk(entry, volume);
    if (made.ok()) made = co_await MakeDisk(entry, volume);
    const bool was_told = !entry->pull.text().empty();
    entry->pull.End();
    if (was_told) Changed(*entry, "image");
    if (made.Is(Reason::kCancelled)) co_return made;
    if (all.ok()) all = made;  // one that cannot be made is not in the way of the others
  }
  co_return all;
}

void MachineHost::MakeLater(const Pointer& entry) {
  if (entry->late.is_on) return;
  entry->late.is_on = true;
  work_.Spawn("machine.disks", MakeLate(entry));
}

rt::Task<Status> MachineHost::MakeLate(Pointer entry) {
  rt::Context& context = co_await rt::CurrentContext();
  rt::Backoff backoff(options_.retry);
  while (WantsDisks(*entry) && entry->observed.alive()) {
    entry->late.nudge.Reset();  // whatever it was about is looked at now
    const Status made = co_await MakeDisks(entry);
    if (context.cancelled()) co_return Cancelled();
    if (made.ok()) break;
    if (made.Is(Reason::kCancelled)) continue;  // something else is wanted by now
    if (entry->late.error != made.message()) {
      entry->late.error = made.message();
      entry->late.image_problem = ImageProblem(made);
      Say(entry->record.object.metadata,
          iri::EventType::kWarning,
          "Failed",
          "Attach",
          entry->late.error);
      Changed(*entry, "devices");
    }
    const Duration pause = backoff.Next(deps_.loop.random());
    const Status waited = co_await rt::WithDeadline(entry->late.nudge.Wait(), pause);
    if (waited.Is(Reason::kCancelled)) co_return waited;
  }
  entry->late.is_on = false;
  if (!entry->late.error.empty()) Changed(*entry, "devices");
  entry->late.error.clear();
  entry->late.image_problem.clear();
  Doubt(entry, Duration());
  co_return OkStatus();
}

rt::Task<Status> MachineHost::FillFromImage(image::RootDisk disk,
                                            iri::LocalDisk wanted,
                                            DiskFile part) {
  DiskCopy copy;
  copy.source = DiskFileOf(disk);
  copy.target = part;
  CO_TRY(const int64_t has, co_await deps_.disks.ForeignVirtualBytes(copy.source));
  copy.bytes = wanted.size_bytes > 0 ? WholeSectors(wanted.size_bytes) : has;
  const int64_t bytes = copy.bytes;
  if (has > bytes) {
    co_return BadRequest(fmt::format("a disk of {} bytes does not fit into one of {}", has, bytes));
  }
  CO_TRY_STATUS(co_await deps_.disks.Copy(std::move(copy)));
  CO_TRY_STATUS(co_await deps_.disks.Grow(std::move(part), bytes));
  co_return OkStatus();
}

rt::Task<Status> MachineHost::MakePart(image::ImageFiles files,
                                       iri::LocalDisk wanted,
                                       DiskFile part) {
  if (!files.disk.has_value()) {
    const int64_t bytes = std::max(WholeSectors(wanted.size_bytes), kSectorBytes);
    co_return co_await deps_.disks.Create(std::move(part), bytes, std::string());
  }
  const std::string image = wanted.image;
  const Status filled = co_await FillFromImage(*files.disk, std::move(wanted), std::move(part));
  co_return filled.ok() ? filled : OfImage(filled.Wrap("image " + Quote(image)), image);
}

rt::Task<Result<MachineHost::ImageDisk>> MachineHost::LookAtImageDisk(Pointer entry,
                                                                      iri::MachineVolume volume) {
  ImageDisk disk;
  const DiskFile whole = deps_.folders.LocalDisk(entry->record.object.metadata.id, volume.name);
  CO_TRY(disk.is_there, co_await deps_.folders.Exists(whole.path));
  if (disk.is_there) {
    CO_TRY(disk.bytes, co_await deps_.disks.VirtualBytes(whole));
    co_return disk;
  }
  const std::string image = volume.local_disk->image;
  ImageRequest request = ToldImageRequestOf(entry);
  request.reference = image;
  const Result<image::ImageFiles> files = co_await FetchImage(std::move(request));
  if (!files.ok()) co_return OfImage(files.status(), image);
  disk.bytes = kSectorBytes;  // what an empty one has at least
  if (!files->disk.has_value()) co_return disk;
  const Result<int64_t> has = co_await deps_.disks.ForeignVirtualBytes(DiskFileOf(*files->disk));
  if (!has.ok()) co_return OfImage(has.status().Wrap("image " + Quote(image)), image);
  disk.bytes = WholeSectors(*has);
  co_return disk;
}

rt::Task<Status> MachineHost::CountImageDisk(Pointer entry, iri::MachineVolume volume) {
  if (!HasSizeOfImage(volume) || entry->record.image_sized.contains(volume.name)) {
    co_return OkStatus();
  }
  rt::Task<Result<ImageDisk>> look = LookAtImageDisk(entry, volume);
  CO_TRY(const ImageDisk disk, co_await WhileWanted(entry, std::move(look)));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  CO_TRY(const rt::Gate::Permit admitted, co_await admission_.Enter());
  MachineRecord next = entry->record;
  if (next.is_deleted() || !Names(next, volume)) co_return Cancelled();
  const iri::ResourceVector more = {{std::string(iri::kStorage), disk.bytes}};
  const ClaimedRoom claimed(claimed_);
  if (!disk.is_there) {  // one that is there cannot be refused any more
    const std::string_view uid = LabelOf(next.object.metadata, iri::kMachineUidLabel);
    CO_TRY_STATUS(CheckFits(more, Used(uid), options_.total));
    CO_TRY_STATUS(co_await ClaimDisk(disk.bytes));
  }
  AddTo(next.resources, more);
  next.image_sized[volume.name] = disk.bytes;
  co_return co_await SaveInside(entry, std::move(next));
}

// A disk that is made elsewhere and gets its name when it is whole, and the guest's kernel is there
// too: a disk that is there needs no image any more.
rt::Task<Status> MachineHost::MakeDisk(Pointer entry, iri::MachineVolume volume) {
  const DiskFile whole = deps_.folders.LocalDisk(entry->record.object.metadata.id, volume.name);
  CO_TRY(const bool there, co_await deps_.folders.Exists(whole.path));
  if (there) co_return OkStatus();
  const DiskFile part = {.path = whole.path + ".part", .format = whole.format};
  Status made = co_await WhileWanted(entry, FillDisk(entry, volume, part));
  // Inside, because whoever takes the volume from the record removes its disk: what comes after
  // that has no name, and nobody finds it in the place of another.
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (made.ok() && !Names(entry->record, volume)) made = Cancelled();
  if (made.ok()) co_return co_await deps_.folders.Settle(part.path, whole.path);
  // Nothing of a failed attempt takes room until the next.
  CO_TRY_STATUS(co_await deps_.folders.RemoveFile(part.path));
  co_return made;
}

rt::Task<Status> MachineHost::FillDisk(Pointer entry, iri::MachineVolume volume, DiskFile part) {
  const std::string id = entry->record.object.metadata.id;
  const std::string image = volume.local_disk->image;
  // What was counted, even if the image is another one by now.
  const auto sized = entry->record.image_sized.find(volume.name);
  if (sized != entry->record.image_sized.end()) volume.local_disk->size_bytes = sized->second;
  image::ImageFiles files;
  if (!image.empty()) {
    ImageRequest request = ToldImageRequestOf(entry);
    request.reference = image;
    const int64_t bytes = WholeSectors(volume.local_disk->size_bytes);
    if (bytes > 0) request.disk_bytes_max = bytes;
    Result<image::ImageFiles> fetched = co_await FetchImage(std::move(request));
    if (!fetched.ok()) co_return OfImage(fetched.status(), image);
    files = *std::move(fetched);
    NoteImage(*entry);
    CO_TRY_STATUS(co_await AdmitMedia(entry, &files, image));
    if (files.kernel.has_value()) {
      CO_TRY_STATUS(co_await ClaimKernel(id, *files.kernel, image));
    }
  }
  // Nobody removes a blob before all of them are copied.
  const std::optional<image::LayoutHold> hold = std::exchange(files.hold, std::nullopt);
  // The kernel is written while qemu-img works on the disk.
  std::vector<rt::Task<Status>> all;
  if (files.kernel.has_value()) all.push_back(deps_.folders.PutKernel(id, *files.kernel));
  if (!files.iso.empty() || !files.squashfs.empty()) {
    GuestFolders::Media media{.iso = files.iso, .squashfs = files.squashfs};
    all.push_back(deps_.folders.PutMedia(id, std::move(media)));
  }
  all.push_back(MakePart(std::move(files), *volume.local_disk, std::move(part)));
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(all));
  for (const Status& end : ends) {
    if (!end.ok()) co_return end;
  }
  co_return OkStatus();
}

rt::Task<Result<bool>> MachineHost::HasDisk(std::string id, iri::MachineVolume volume) {
  if (!volume.local_disk.has_value()) co_return true;
  co_return co_await deps_.folders.Exists(deps_.folders.LocalDisk(id, volume.name).path);
}

}  // namespace berth::runtime
