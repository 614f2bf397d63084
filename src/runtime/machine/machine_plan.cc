// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/machine_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "runtime/machine/domain_text.h"
#include "runtime/volume/plan.h"

namespace berth::runtime {
namespace {

std::string AttributeOf(const iri::VolumeConnection& connection, std::string_view key) {
  const auto found = connection.attributes.find(key);
  return found == connection.attributes.end() ? std::string() : found->second;
}

Status CheckConnection(const iri::VolumeConnection& connection, const std::string& where) {
  if (connection.driver != iri::kFileDriver) {
    return BadRequest(where + ": driver " + Quote(connection.driver) + ": expected " +
                      Quote(iri::kFileDriver));
  }
  const std::string path = AttributeOf(connection, iri::kPathAttribute);
  if (!path.starts_with('/')) {
    return BadRequest(where + ": path " + Quote(path) + ": expected an absolute path");
  }
  const std::string format = AttributeOf(connection, iri::kFormatAttribute);
  if (!DiskFormatOf(format).has_value()) {
    return BadRequest(where + ": format " + Quote(format) + ": expected qcow2, raw or luks");
  }
  for (const std::string_view key : {iri::kTpsAttribute, iri::kIopsAttribute}) {
    const std::string limit = AttributeOf(connection, key);
    if (!limit.empty() && ParseInt(limit).value_or(-1) < 0) {
      return BadRequest(where + ": " + std::string(key) + " " + Quote(limit));
    }
  }
  return OkStatus();
}

Status CheckVolume(const iri::MachineVolume& volume) {
  const std::string where = "volume " + Quote(volume.name);
  if (volume.name.empty()) return BadRequest("a volume has no name");
  if (volume.local_disk.has_value() == volume.connection.has_value()) {
    return BadRequest(where + ": expected a local disk or a connection");
  }
  const auto target = TargetOf(volume.device);
  if (!target.ok()) return target.status().Wrap(where);
  if (volume.connection.has_value()) return CheckConnection(*volume.connection, where);
  if (volume.local_disk->size_bytes <= 0 && volume.local_disk->image.empty()) {
    return BadRequest(where + ": a local disk of no size");
  }
  return OkStatus();
}

DomainDisk SquashfsOf(const std::string& path) {
  DomainDisk disk;
  disk.target = kSquashfsTarget;
  disk.serial = kSquashfsSerial;
  disk.file = {.path = path, .format = DiskFormat::kRaw};
  disk.access = DomainDisk::Access::kReadOnly;
  return disk;
}

}  // namespace

MachineStep NextStep(const MachineRecord& record, const Observed& observed, Due due) {
  if (record.is_deleted()) return MachineStep::kRemove;
  const bool on = record.object.spec.power == iri::Power::kOn;
  if (!on) return observed.alive() ? MachineStep::kStop : MachineStep::kNone;
  if (observed.alive()) {
    // First, because a guest that stands still lets go of nothing.
    if (due.resume && observed.lacks_room()) return MachineStep::kResume;
    return due.match ? MachineStep::kMatch : MachineStep::kNone;
  }
  if (record.end.kind != GuestEnd::Kind::kNone) return MachineStep::kNone;
  return record.started_in.empty() ? MachineStep::kStart : MachineStep::kNote;
}

GuestEnd EndOf(const MachineRecord& record, const Observed& observed, std::string_view boot_id) {
  GuestEnd end;
  end.kind = GuestEnd::Kind::kFailed;
  if (record.started_in != boot_id) {
    end.reason = "HostLostPower";
    end.message = "the host was switched off or rebooted";
    return end;
  }
  switch (observed.off_reason) {
    case OffReason::kShutDown:
      end.kind = GuestEnd::Kind::kShutDown;
      end.reason = "ShutDown";
      end.message = "the guest shut itself down";
      break;
    case OffReason::kFailed:
      end.reason = "Crashed";
      end.message = "the guest crashed or was killed";
      break;
    case OffReason::kDestroyed:
      end.reason = "Destroyed";
      end.message = "somebody else ended the guest";
      break;
    case OffReason::kUnknown:
      end.reason = "Lost";
      end.message = "the guest is not there any more, and nobody knows why";
      break;
  }
  return end;
}

bool MovesOnPoolLoss(const iri::Machine& machine) {
  const auto policy = machine.metadata.annotations.find(iri::kOnPoolLossAnnotation);
  return policy != machine.metadata.annotations.end() && policy->second == iri::kOnPoolLossMove;
}

bool IsHeld(const iri::Machine& machine, const Observed& observed) {
  return MovesOnPoolLoss(machine) && observed.state == GuestState::kPaused &&
         observed.pause == PauseReason::kTold;
}

std::string PausedWords(PauseReason why) {
  std::string words = "the guest is paused: " + std::string(PauseReasonText(why));
  if (why == PauseReason::kDiskFull) words += "; it goes on when there is room again";
  return words;
}

Status CheckSpec(const iri::MachineSpec& spec) {
  std::set<std::string> names;
  std::set<std::string> devices;
  for (const iri::MachineVolume& volume : spec.volumes) {
    TRY_STATUS(CheckVolume(volume));
    if (!names.insert(volume.name).second) {
      return BadRequest("volume " + Quote(volume.name) + " is there twice");
    }
    if (!devices.insert(volume.device).second) {
      return BadRequest("volume " + Quote(volume.name) + ": device " + Quote(volume.device) +
                        " is taken");
    }
  }
  names.clear();
  for (const iri::MachineNic& nic : spec.nics) {
    if (nic.name.empty()) return BadRequest("a network interface has no name");
    if (!names.insert(nic.name).second) {
      return BadRequest("network interface " + Quote(nic.name) + " is there twice");
    }
  }
  return OkStatus();
}

iri::ResourceVector NeedsOf(const iri::MachineClass& machine_class, const iri::MachineSpec& spec) {
  iri::ResourceVector needs = ToResourceVector(machine_class);
  int64_t bytes = 0;
  for (const iri::MachineVolume& volume : spec.volumes) {
    if (volume.local_disk.has_value()) bytes += volume.local_disk->size_bytes;
  }
  if (bytes > 0) needs[std::string(iri::kStorage)] += bytes;
  return needs;
}

std::string SecretUuid(std::string_view machine_id, std::string_view volume) {
  return UuidOf("secret/" + std::string(machine_id) + "/" + std::string(volume));
}

std::string DomainNameOf(std::string_view machine_id) { return "berth-" + std::string(machine_id); }

Result<DomainDisk> DiskOf(std::string_view machine_id,
                          const iri::MachineVolume& volume,
                          const GuestFolders& folders) {
  DomainDisk disk;
  TRY(disk.target, TargetOf(volume.device));
  disk.serial = SerialOf(volume.name);
  if (volume.local_disk.has_value()) {
    disk.file = folders.LocalDisk(machine_id, volume.name);
    return disk;
  }
  const iri::VolumeConnection& connection = *volume.connection;
  disk.file.path = AttributeOf(connection, iri::kPathAttribute);
  const auto format = DiskFormatOf(AttributeOf(connection, iri::kFormatAttribute));
  if (!format.has_value()) return BadRequest("volume " + Quote(volume.name) + ": unknown format");
  disk.file.format = *format;
  if (*format == DiskFormat::kLuks) disk.secret_uuid = SecretUuid(machine_id, volume.name);
  disk.tps = ParseInt(AttributeOf(connection, iri::kTpsAttribute)).value_or(0);
  disk.iops = ParseInt(AttributeOf(connection, iri::kIopsAttribute)).value_or(0);
  return disk;
}

Status ChooseBoot(image::ImageFiles& files,
                  OfferedMachineClass::Firmware firmware,
                  std::string_view class_name) {
  if (!files.uki.has_value()) return OkStatus();
  if (firmware == OfferedMachineClass::Firmware::kEfi) {
    files.kernel = std::exchange(files.uki, std::nullopt);
    return OkStatus();
  }
  files.uki.reset();
  files.squashfs.clear();  // it is for the kernel in it
  if (files.disk.has_value() || !files.iso.empty()) return OkStatus();
  return BadRequest("its layer of type " + std::string(image::MediaTypeOf(image::Part::kUki)) +
                    " boots under EFI firmware, which machines of class " + Quote(class_name) +
                    " do not have here (firmware: efi in the file of classes), and it has no "
                    "kernel, disk or CD");
}

DomainDisk SeedOf(std::string_view machine_id, const GuestFolders& folders) {
  DomainDisk seed;
  seed.target = kSeedTarget;
  seed.serial = kSeedSerial;
  seed.file = {.path = folders.SeedFile(machine_id), .format = DiskFormat::kRaw};
  seed.access = DomainDisk::Access::kReadOnly;
  return seed;
}

std::string HostnameOf(const iri::Machine& machine) {
  if (!machine.spec.hostname.empty()) return machine.spec.hostname;
  return std::string(LabelOf(machine.metadata, iri::kMachineNameLabel));
}

PluggedNic PluggedOf(const iri::Machine& machine, iri::MachineNic nic) {
  return {
      .machine_id = machine.metadata.id, .nic = std::move(nic), .hostname = HostnameOf(machine)};
}

Result<DomainPlan> PlanOf(const MachineRecord& record, const PlanContext& context) {
  constexpr int64_t kThousandths = 1000;
  const iri::Machine& machine = record.object;
  const std::string& id = machine.metadata.id;
  DomainPlan plan;
  plan.name = DomainNameOf(id);
  // Another domain of the same machine is refused by libvirt itself.
  const std::string_view uid = LabelOf(machine.metadata, iri::kMachineUidLabel);
  plan.uuid = UuidOf(record.owner + "/" + (uid.empty() ? id : std::string(uid)));
  plan.title = std::string(LabelOf(machine.metadata, iri::kMachineNamespaceLabel)) + "/" +
               std::string(LabelOf(machine.metadata, iri::kMachineNameLabel));
  plan.emulator = context.emulator;
  plan.acceleration = context.acceleration;
  const auto cpu = record.resources.find(iri::kCpu);
  const auto memory = record.resources.find(iri::kMemory);
  if (cpu == record.resources.end() || memory == record.resources.end()) {
    return BadRequest("the class says nothing of cpu and memory");
  }
  plan.cpus = std::max<int64_t>((cpu->second + kThousandths - 1) / kThousandths, 1);
  plan.memory_bytes = memory->second;
  if (context.firmware == OfferedMachineClass::Firmware::kEfi) {
    plan.efi = EfiFirmware{.code = context.efi_code,
                           .variables_template = context.efi_variables,
                           .variables = context.folders.EfiVariables(id)};
  }
  plan.kernel = context.kernel;
  for (const iri::MachineVolume& volume : machine.spec.volumes) {
    TRY(DomainDisk disk, DiskOf(id, volume, context.folders));
    plan.disks.push_back(std::move(disk));
  }
  // The guest boots the first of them, by its device.
  std::ranges::sort(plan.disks, {}, &DomainDisk::target);
  plan.disks.push_back(SeedOf(id, context.folders));
  if (!context.media.squashfs.empty()) plan.disks.push_back(SquashfsOf(context.media.squashfs));
  plan.iso = context.media.iso;
  for (const iri::MachineNic& nic : machine.spec.nics) {
    TRY(DomainNic described, context.networks.Describe(id, nic));
    plan.nics.push_back(std::move(described));
  }
  plan.console_socket = context.folders.ConsoleSocket(id);
  plan.agent_socket = context.folders.AgentSocket(id);
  plan.console_log = context.folders.ConsoleLog(id);
  if (context.has_ignition) plan.ignition_file = context.folders.IgnitionFile(id);
  plan.record = ToText(record);
  TRY_STATUS(CheckPlan(plan));
  return plan;
}

DeviceDrift DriftOf(const DomainPlan& plan, const DeviceElements& live) {
  DeviceDrift drift;
  std::set<std::string> as_planned;
  for (const DomainDisk& disk : plan.disks) {
    const auto found = live.find(disk.target);
    const bool is_it =
        found != live.end() && DeviceOfFile(found->second, disk.file.path) == disk.target;
    // It has its seed from the start, or does without.
    if (is_it || IsFixedTarget(disk.target)) {
      as_planned.insert(disk.target);
    } else {
      drift.disks.push_back(disk);
    }
  }
  for (const DomainNic& nic : plan.nics) {
    if (live.contains(nic.mac)) {
      as_planned.insert(nic.mac);
    } else {
      drift.nics.push_back(nic);
    }
  }
  for (const auto& [device, element] : live) {
    if (as_planned.contains(device) || IsFixedTarget(device)) continue;
    if (IsOwnDevice(element)) drift.extra.emplace(device, element);
  }
  return drift;
}

}  // namespace berth::runtime
