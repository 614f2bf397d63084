// SPDX-License-Identifier: Apache-2.0
// What an image has beside a disk and a kernel: whether a machine can boot it, and its room.
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file_status.h"
#include "base/strings.h"
#include "iri/labels.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {
namespace {

Result<int64_t> BytesOf(const std::string& path) {
  if (path.empty()) return int64_t{0};
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return FileFailed("look at", path);
  return int64_t{status.st_size};
}

}  // namespace

rt::Task<Status> MachineHost::AdmitMedia(Pointer entry,
                                         image::ImageFiles* files,
                                         std::string image) {
  const std::string name = "image " + Quote(image);
  const std::string machine_id = entry->record.object.metadata.id;
  const bool starts = !entry->observed.alive();
  const std::string class_name = entry->record.object.spec.class_name;
  const auto* const offered = FindClass(options_.classes, class_name);
  const auto firmware =
      offered != nullptr ? offered->firmware : OfferedMachineClass::Firmware::kBios;
  const Status boots = ChooseBoot(*files, firmware, class_name);
  if (!boots.ok()) co_return OfImage(boots.Wrap(name), image);
  const bool has_media = !files->iso.empty() || !files->squashfs.empty();
  if (!has_media && (!starts || entry->record.media_bytes == 0)) co_return OkStatus();
  if (!starts) {
    const auto part = files->iso.empty() ? image::Part::kSquashfs : image::Part::kIso;
    const Status late = BadRequest(
        name + ": its layer of type " + std::string(image::MediaTypeOf(part)) +
        " is for a guest that starts with this disk, and this one runs: it gets it once it was "
        "switched off and on");
    co_return OfImage(late, image);
  }
  // It has at most one of each, and keeps what it has: only what it lacks is copied.
  CO_TRY(const GuestFolders::Media own, co_await deps_.folders.FindMedia(machine_id));
  const auto measure = [files, &own]() -> Result<int64_t> {
    TRY(const int64_t iso, BytesOf(own.iso.empty() ? files->iso : own.iso));
    TRY(const int64_t squashfs, BytesOf(own.squashfs.empty() ? files->squashfs : own.squashfs));
    return iso + squashfs;
  };
  CO_TRY(const int64_t bytes, co_await deps_.files.Run("machines.media", measure));
  const Status counted = co_await CountMedia(std::move(entry), bytes);
  co_return counted.Is(Reason::kTooManyRequests) ? OfImage(counted.Wrap(name), image) : counted;
}

void MachineHost::NoteImage(Entry& entry) {
  if (entry.observed.alive()) return;  // it is one of a disk that comes later
  const bool was_told = !entry.pull.text().empty();
  entry.pull.End();
  entry.has_image = true;
  if (was_told) Changed(entry, "image");
}

rt::Task<Status> MachineHost::CountMedia(Pointer entry, int64_t bytes) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  // What an attempt before counted, of this image or of another, may be more or less.
  const int64_t missing = bytes - entry->record.media_bytes;
  if (missing == 0) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit admitted, co_await admission_.Enter());
  const ClaimedRoom claimed(claimed_);
  if (missing > 0) {
    const iri::ResourceVector more = {{std::string(iri::kStorage), missing}};
    const std::string uid(LabelOf(entry->record.object.metadata, iri::kMachineUidLabel));
    CO_TRY_STATUS(CheckFits(more, Used(uid), options_.total));
    CO_TRY_STATUS(co_await ClaimDisk(missing));
  }
  MachineRecord next = entry->record;
  SetMediaBytes(next, bytes);
  co_return co_await SaveInside(std::move(entry), std::move(next));
}

void MachineHost::SetMediaBytes(MachineRecord& record, int64_t bytes) {
  if (bytes == record.media_bytes) return;
  record.resources[std::string(iri::kStorage)] += bytes - record.media_bytes;
  record.media_bytes = bytes;
}

rt::Task<Result<int64_t>> MachineHost::FindBootFiles(Pointer entry) {
  const std::string id = entry->record.object.metadata.id;
  CO_TRY(entry->kernel, co_await deps_.folders.FindKernel(id));
  CO_TRY(entry->kernel_bytes, co_await deps_.folders.KernelBytes(id));
  CO_TRY(entry->media, co_await deps_.folders.FindMedia(id));
  std::vector<std::string> media = {entry->media.iso, entry->media.squashfs};
  co_return co_await deps_.folders.BytesOf(std::move(media));
}

}  // namespace berth::runtime
