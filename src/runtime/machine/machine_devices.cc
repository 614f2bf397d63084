// SPDX-License-Identifier: Apache-2.0
// Disks and interfaces of machines, also while their guests run.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "iri/labels.h"
#include "rt/deadline.h"
#include "runtime/machine/machine_host.h"
#include "runtime/volume/plan.h"

namespace berth::runtime {
namespace {

template <class Parts>
auto PartNamed(Parts& parts, std::string_view name) {
  return std::ranges::find_if(parts, [&](const auto& part) { return part.name == name; });
}

// Whether it was done or will be, nobody can say.
bool IsUnknown(const Status& outcome) {
  return outcome.Is(Reason::kTimeout) || outcome.Is(Reason::kUnavailable);
}

}  // namespace

rt::Task<Status> MachineHost::SetKey(std::string machine_id, iri::MachineVolume volume) {
  CO_TRY(const DomainDisk disk, DiskOf(machine_id, volume, deps_.folders));
  if (disk.secret_uuid.empty()) co_return OkStatus();
  const std::string where = "volume " + Quote(volume.name);
  if (volume.connection->encryption_data.empty()) {
    co_return Forbidden(where + " is encrypted, and its key is not known on this host any more");
  }
  CO_TRY(std::string key, KeyOf(volume.connection->encryption_data));
  // libvirt hands a wrong one to QEMU, which says little.
  const Status opens = co_await deps_.disks.Unlock(disk.file, key);
  if (!opens.ok()) co_return opens.Wrap(where);
  co_return co_await deps_.hypervisor.SetSecret(
      disk.secret_uuid, machine_id + "/" + volume.name, std::move(key));
}

rt::Task<Status> MachineHost::AttachVolume(std::string id, iri::MachineVolume volume) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (entry->record.is_deleted()) co_return Conflict("machine " + Quote(id) + " is being deleted");
  MachineRecord next = entry->record;
  if (PartNamed(next.object.spec.volumes, volume.name) != next.object.spec.volumes.end()) {
    co_return AlreadyExists("machine " + Quote(id) + " has a volume " + Quote(volume.name));
  }
  iri::MachineSpec part;
  part.volumes = {volume};
  iri::MachineSpec secrets = TakeSecrets(part);
  next.object.spec.volumes.push_back(part.volumes[0]);
  CO_TRY_STATUS(CheckSpec(next.object.spec));
  if (volume.local_disk.has_value()) {
    co_return co_await AddLocalDisk(entry, std::move(next), *volume.local_disk);
  }
  CO_TRY(const DomainDisk disk, DiskOf(id, volume, deps_.folders));
  CO_TRY_STATUS(co_await SetKey(id, volume));
  // Before the record: whoever finds that has the key, too.
  CO_TRY_STATUS(co_await KeepSecrets(entry, volume.name, std::move(secrets)));
  const MachineRecord before = entry->record;
  ++next.object.metadata.generation;
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  const Status attached = co_await PlugIn(entry, disk.target, DiskXml(disk));
  if (!attached.ok()) Doubt(entry, Duration());  // (1)
  if (!attached.ok() && !IsUnknown(attached)) {
    CO_TRY_STATUS(co_await SaveInside(entry, before));
    CO_TRY_STATUS(co_await KeepSecrets(entry, volume.name, iri::MachineSpec()));
  }
  Changed(*entry, "volumes");
  co_return attached.ok() ? attached : attached.Wrap("volume " + Quote(volume.name));
}

// It is counted and written down. What fills it may take longer than any call: the machine's task
// sees that the guest lacks it.
rt::Task<Status> MachineHost::AddLocalDisk(Pointer entry,
                                           MachineRecord next,
                                           iri::LocalDisk wanted) {
  if (!wanted.image.empty()) CO_TRY_STATUS(deps_.images.Check(wanted.image));
  CO_TRY(const rt::Gate::Permit admitted, co_await admission_.Enter());
  const ClaimedRoom claimed(claimed_);
  if (wanted.size_bytes > 0) {
    const iri::ResourceVector more = {{std::string(iri::kStorage), wanted.size_bytes}};
    const std::string uid(LabelOf(next.object.metadata, iri::kMachineUidLabel));
    CO_TRY_STATUS(CheckFits(more, Used(uid), options_.total));
    CO_TRY_STATUS(co_await ClaimDisk(wanted.size_bytes));
    AddTo(next.resources, more);
  }
  ++next.object.metadata.generation;
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  Changed(*entry, "volumes");
  Doubt(entry, Duration());
  co_return OkStatus();
}

rt::Task<Status> MachineHost::KeepSecrets(Pointer entry,
                                          std::string volume,
                                          iri::MachineSpec secrets) {
  std::vector<iri::MachineVolume>& kept = entry->secrets.volumes;
  std::erase_if(kept, [&](const auto& part) { return part.name == volume; });
  for (iri::MachineVolume& secret : secrets.volumes) kept.push_back(std::move(secret));
  co_return co_await PutSecrets(std::move(entry));
}

// (1) The record names a device before the guest has it. Killed in between, and where the outcome
// is unknown, the record stays and the machine's task gives the guest what it lacks: an attach that
// libvirt comes to late finds its place, and is not in the way of the next. After a failure the
// record is as it was, and if not even that can be done, the task tries again, too.
rt::Task<Status> MachineHost::PlugIn(Pointer entry, std::string device, std::string xml) {
  if (!entry->observed.alive()) co_return OkStatus();
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  const Status attached = co_await deps_.hypervisor.AttachDevice(name, xml);
  if (attached.ok() && entry->live.has_value()) {
    entry->live->insert_or_assign(std::move(device), std::move(xml));
  }
  co_return attached;
}

rt::Task<Status> MachineHost::Unplug(Pointer entry, std::string device, std::string xml) {
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  const Time limit = deps_.loop.Now() + options_.detach_limit;
  for (;;) {
    entry->device_event.Reset();
    if (!entry->observed.alive()) co_return OkStatus();
    const Result<DeviceElements> live = co_await deps_.hypervisor.LiveDevices(name);
    if (live.status().Is(Reason::kConflict)) co_return OkStatus();  // it has ended
    if (!live.ok()) co_return live.status();
    entry->live = *live;
    if (!live->contains(device)) co_return OkStatus();
    if (deps_.loop.Now() >= limit) {
      co_return Conflict("the guest does not let go of " + device);
    }
    // An error: it is being let go of already. What counts is that it is gone.
    const Status asked = co_await deps_.hypervisor.DetachDevice(name, xml);
    if (asked.Is(Reason::kUnavailable) || asked.Is(Reason::kTimeout)) co_return asked;
    const Status waited = co_await rt::WithDeadline(entry->device_event.Wait(), kDetachPause);
    if (waited.Is(Reason::kCancelled)) co_return waited;
  }
}

Status MachineHost::Told(Entry& entry, const Status& unplugged, const std::string& part) {
  if (unplugged.ok()) {
    entry.kept.erase(part);
    return unplugged;
  }
  const Status told = unplugged.Wrap(part);
  if (unplugged.Is(Reason::kConflict) && entry.kept.insert(part).second) {
    Say(entry.record.object.metadata,
        iri::EventType::kWarning,
        "Failed",
        "Detach",
        std::string(told.message()));
    Changed(entry, "detach");  // nothing else tells a reader of events to look
  }
  return told;
}

rt::Task<Status> MachineHost::DetachVolume(std::string id, std::string name) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  MachineRecord next = entry->record;
  const auto found = PartNamed(next.object.spec.volumes, name);
  if (found == next.object.spec.volumes.end()) {
    co_return NotFound("machine " + Quote(id) + " has no volume " + Quote(name));
  }
  const iri::MachineVolume volume = *found;
  CO_TRY(const DomainDisk disk, DiskOf(id, volume, deps_.folders));
  const Status unplugged = co_await Unplug(entry, disk.target, DiskXml(disk));
  CO_TRY_STATUS(Told(*entry, unplugged, "volume " + Quote(name)));
  next.object.spec.volumes.erase(found);
  if (volume.local_disk.has_value()) {
    const auto sized = next.image_sized.extract(name);
    const int64_t of_image = sized.empty() ? 0 : sized.mapped();
    next.resources[std::string(iri::kStorage)] -= volume.local_disk->size_bytes + of_image;
  }
  ++next.object.metadata.generation;
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  if (!disk.secret_uuid.empty()) {
    CO_TRY_STATUS(co_await deps_.hypervisor.RemoveSecret(disk.secret_uuid));
  }
  if (volume.local_disk.has_value()) {
    CancelMaking(*entry);  // perhaps of this one; the others go on
    CO_TRY_STATUS(co_await deps_.folders.RemoveFile(disk.file.path));
  }
  CO_TRY_STATUS(co_await KeepSecrets(entry, name, iri::MachineSpec()));
  Changed(*entry, "volumes");
  co_return OkStatus();
}

rt::Task<Status> MachineHost::TakeKey(Pointer entry, iri::MachineVolume volume) {
  iri::SecretMap& given = volume.connection->encryption_data;
  if (given.empty()) co_return OkStatus();
  CO_TRY_STATUS(KeyOf(given));
  std::vector<iri::MachineVolume>& secrets = entry->secrets.volumes;
  auto part = PartNamed(secrets, volume.name);
  if (part == secrets.end()) {
    part = secrets.insert(secrets.end(), iri::MachineVolume());
    part->name = volume.name;
    part->connection = iri::VolumeConnection();
  }
  if (part->connection->encryption_data == given) co_return OkStatus();
  part->connection->encryption_data = std::move(given);
  CO_TRY_STATUS(co_await PutSecrets(entry));
  Changed(*entry, "volumes");
  Tend(entry);  // it may have waited for this one
  co_return OkStatus();
}

rt::Task<Status> MachineHost::UpdateVolume(std::string id, iri::MachineVolume volume) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  MachineRecord next = entry->record;
  const auto found = PartNamed(next.object.spec.volumes, volume.name);
  if (found == next.object.spec.volumes.end()) {
    co_return NotFound("machine " + Quote(id) + " has no volume " + Quote(volume.name));
  }
  const bool same = found->connection.has_value() && volume.connection.has_value() &&
                    found->connection->driver == volume.connection->driver &&
                    found->connection->handle == volume.connection->handle;
  if (!same) {
    co_return BadRequest("volume " + Quote(volume.name) +
                         ": only size and key of a connected volume can change");
  }
  const int64_t bytes = volume.connection->effective_storage_bytes;
  if (bytes < found->connection->effective_storage_bytes) {
    co_return BadRequest("volume " + Quote(volume.name) + ": a disk never shrinks");
  }
  CO_TRY(const DomainDisk disk, DiskOf(id, *found, deps_.folders));
  if (!disk.secret_uuid.empty()) CO_TRY_STATUS(co_await TakeKey(entry, volume));
  if (entry->observed.alive() && entry->Shows(disk.target)) {
    CO_TRY_STATUS(
        co_await deps_.hypervisor.ResizeDisk(DomainNameOf(id), disk.target, WholeSectors(bytes)));
  }
  if (found->connection->effective_storage_bytes == bytes) co_return OkStatus();
  found->connection->effective_storage_bytes = bytes;
  ++next.object.metadata.generation;
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  Changed(*entry, "volumes");
  co_return OkStatus();
}

rt::Task<Status> MachineHost::AttachNetworkInterface(std::string id, iri::MachineNic nic) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (entry->record.is_deleted()) co_return Conflict("machine " + Quote(id) + " is being deleted");
  MachineRecord next = entry->record;
  if (PartNamed(next.object.spec.nics, nic.name) != next.object.spec.nics.end()) {
    co_return AlreadyExists("machine " + Quote(id) + " has a network interface " + Quote(nic.name));
  }
  next.object.spec.nics.push_back(nic);
  CO_TRY_STATUS(CheckSpec(next.object.spec));
  CO_TRY(const DomainNic described, deps_.networks.Describe(id, nic));
  PluggedNic plugged = PluggedOf(entry->record.object, nic);
  CO_TRY_STATUS(co_await deps_.networks.Plug(std::move(plugged)));
  const MachineRecord before = entry->record;
  ++next.object.metadata.generation;
  const Status saved = co_await SaveInside(entry, std::move(next));
  if (!saved.ok()) {
    CO_TRY_STATUS(co_await deps_.networks.Unplug(id, nic));
    co_return saved;
  }
  const Status attached = co_await PlugIn(entry, described.mac, NicXml(described));
  if (!attached.ok()) Doubt(entry, Duration());  // (1)
  if (!attached.ok() && !IsUnknown(attached)) {
    CO_TRY_STATUS(co_await SaveInside(entry, before));
    CO_TRY_STATUS(co_await deps_.networks.Unplug(id, nic));
  }
  Changed(*entry, "network interfaces");
  co_return attached.ok() ? attached : attached.Wrap("network interface " + Quote(nic.name));
}

rt::Task<Status> MachineHost::DetachNetworkInterface(std::string id, std::string name) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  MachineRecord next = entry->record;
  const auto found = PartNamed(next.object.spec.nics, name);
  if (found == next.object.spec.nics.end()) {
    co_return NotFound("machine " + Quote(id) + " has no network interface " + Quote(name));
  }
  const iri::MachineNic nic = *found;
  CO_TRY(const DomainNic described, deps_.networks.Describe(id, nic));
  const Status unplugged = co_await Unplug(entry, described.mac, NicXml(described));
  CO_TRY_STATUS(Told(*entry, unplugged, "network interface " + Quote(name)));
  next.object.spec.nics.erase(found);
  ++next.object.metadata.generation;
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  CO_TRY_STATUS(co_await deps_.networks.Unplug(id, nic));
  Changed(*entry, "network interfaces");
  co_return OkStatus();
}

}  // namespace berth::runtime
