// SPDX-License-Identifier: Apache-2.0
// What callers ask of machines: check, write down, answer.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "iri/wire/json.h"
#include "rt/deadline.h"
#include "runtime/machine/machine_host.h"
#include "runtime/machine/seed_disk.h"
#include "runtime/volume/plan.h"

namespace berth::runtime {

using iri::AttachmentState;
using iri::ChangeType;
using iri::MachineState;
using iri::ObjectKind;

namespace {

template <class Parts>
auto PartNamed(Parts& parts, std::string_view name) {
  return std::ranges::find_if(parts, [&](const auto& part) { return part.name == name; });
}

bool IsEncrypted(const iri::MachineVolume& volume, const GuestFolders& folders) {
  const Result<DomainDisk> disk = DiskOf("", volume, folders);
  return disk.ok() && disk->file.format == DiskFormat::kLuks;
}

MachineState StateOf(const MachineRecord& record, const Observed& observed) {
  if (record.is_deleted()) return MachineState::kTerminating;
  const bool held = IsHeld(record.object, observed);
  switch (observed.state) {
    case GuestState::kRunning:
    case GuestState::kStopping: return MachineState::kRunning;
    case GuestState::kPaused: return held ? MachineState::kPending : MachineState::kSuspended;
    case GuestState::kOff: break;
  }
  if (record.object.spec.power != iri::Power::kOn) return MachineState::kStopped;
  switch (record.end.kind) {
    case GuestEnd::Kind::kNone: return MachineState::kPending;
    case GuestEnd::Kind::kShutDown: return MachineState::kStopped;
    case GuestEnd::Kind::kFailed: return MachineState::kTerminated;
  }
  return MachineState::kUnknown;
}

}  // namespace

Result<MachineHost::Pointer> MachineHost::Find(std::string_view id) const {
  const auto found = machines_.find(id);
  if (found == machines_.end()) return NotFound("machine " + Quote(id) + " not found");
  return found->second;
}

MachineHost::Pointer MachineHost::OfUid(std::string_view uid) const {
  if (uid.empty()) return nullptr;
  for (const auto& [id, entry] : machines_) {
    if (LabelOf(entry->record.object.metadata, iri::kMachineUidLabel) == uid) return entry;
  }
  return nullptr;
}

Status MachineHost::CheckEfi(std::string_view class_name, std::string_view variables) const {
  if (variables.empty()) return OkStatus();
  TRY_STATUS(iri::EfiVariablesOf(variables));
  const auto* const offered = FindClass(options_.classes, class_name);
  if (offered != nullptr && offered->firmware == OfferedMachineClass::Firmware::kEfi) {
    return OkStatus();
  }
  return BadRequest("efiVars: machines of class " + Quote(class_name) +
                    " have no EFI firmware here (firmware: efi in the file of classes)");
}

rt::Task<Status> MachineHost::CheckFirmware(std::string class_name) {
  const auto* const offered = FindClass(options_.classes, class_name);
  if (offered == nullptr || offered->firmware != OfferedMachineClass::Firmware::kEfi) {
    co_return OkStatus();
  }
  const auto job = [this, &class_name]() -> Status {
    for (const std::string& path : {options_.efi_code, options_.efi_variables}) {
      std::error_code failed;
      if (std::filesystem::exists(path, failed)) continue;
      return BadRequest("machines of class " + Quote(class_name) + " have EFI firmware, and " +
                        path + " is not on this host: install it (Debian: apt-get install ovmf)");
    }
    return OkStatus();
  };
  co_return co_await deps_.files.Run("machines.firmware", job);
}

Result<DomainPlan> MachineHost::Plan(const Entry& entry, const MachineRecord& record) const {
  PlanContext context{.folders = deps_.folders, .networks = deps_.networks};
  context.acceleration = options_.acceleration;
  context.emulator = options_.emulator;
  context.efi_code = options_.efi_code;
  context.efi_variables = options_.efi_variables;
  const auto* const offered = FindClass(options_.classes, record.object.spec.class_name);
  if (offered != nullptr) context.firmware = offered->firmware;
  context.kernel = entry.kernel;
  context.media = entry.media;
  const std::string& data = entry.secrets.ignition_data;
  context.has_ignition = !data.empty() && !IsCloudInit(data);
  return PlanOf(record, context);
}

rt::Task<Status> MachineHost::SaveInside(Pointer entry, MachineRecord next) {
  if (entry->is_gone) co_return NotFound("machine " + next.object.metadata.id + " is gone");
  CO_TRY(const DomainPlan plan, Plan(*entry, next));
  CO_TRY_STATUS(co_await deps_.hypervisor.Define(DomainXml(plan)));
  entry->record = std::move(next);
  co_return OkStatus();
}

rt::Task<Status> MachineHost::Save(Pointer entry, std::function<void(MachineRecord&)> change) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  MachineRecord next = entry->record;
  change(next);
  co_return co_await SaveInside(std::move(entry), std::move(next));
}

rt::Task<Status> MachineHost::PutSecrets(Pointer entry) {
  GuestFolders::Content content;
  if (HasSecrets(entry->secrets)) {
    iri::Machine only;
    only.spec = entry->secrets;
    content.secrets = iri::ToJson(only);
  }
  const std::string& data = entry->secrets.ignition_data;
  const bool is_cloud_init = IsCloudInit(data);
  if (!is_cloud_init) content.ignition = data;
  const iri::Machine& machine = entry->record.object;
  std::vector<SeedFile> files =
      NoCloudFiles(machine.metadata.id, HostnameOf(machine), is_cloud_init ? data : std::string());
  std::vector<SeedNic> nics;
  for (const iri::MachineNic& nic : machine.spec.nics) {
    const Result<DomainNic> described = deps_.networks.Describe(machine.metadata.id, nic);
    if (described.ok()) nics.push_back({.mac = described->mac, .ips = nic.ips});
  }
  if (auto network = NetworkConfig(nics)) files.push_back(*std::move(network));
  content.seed = SeedDisk(kSeedLabel, files);
  co_return co_await deps_.folders.Prepare(machine.metadata.id, std::move(content));
}

iri::Machine MachineHost::Shown(const Entry& entry) const {
  iri::Machine shown = entry.record.object;
  shown.spec = WithSecrets(std::move(shown.spec), entry.secrets);
  shown.status.observed_generation = shown.metadata.generation;
  const Observed seen = SeenOf(entry);
  shown.status.state = StateOf(entry.record, seen);
  const auto state_of = [&entry](const std::string& device) {
    const bool there = !entry.observed.alive() || entry.Shows(device);
    return there ? AttachmentState::kAttached : AttachmentState::kPending;
  };
  for (const iri::MachineVolume& volume : shown.spec.volumes) {
    const std::string handle = volume.connection.has_value()
                                   ? volume.connection->handle
                                   : shown.metadata.id + "/" + volume.name;
    const Result<std::string> target = TargetOf(volume.device);
    const AttachmentState state = state_of(target.ok() ? *target : std::string());
    shown.status.volumes.push_back({.name = volume.name, .handle = handle, .state = state});
    if (volume.local_disk.has_value() && shown.status.image_ref.empty()) {
      shown.status.image_ref = volume.local_disk->image;
    }
  }
  for (const iri::MachineNic& nic : shown.spec.nics) {
    const Result<DomainNic> described = deps_.networks.Describe(shown.metadata.id, nic);
    const AttachmentState state = state_of(described.ok() ? described->mac : std::string());
    shown.status.nics.push_back(
        {.name = nic.name, .handle = shown.metadata.id + "/" + nic.name, .state = state});
  }
  // Of its guest, or of a disk that it is to get.
  const std::string& error = entry.error.empty() ? entry.late.error : entry.error;
  const std::string& image_problem =
      entry.error.empty() ? entry.late.image_problem : entry.image_problem;
  if (image_problem.empty() && !entry.pull.text().empty()) {
    shown.status.conditions.push_back({.type = std::string(iri::kImageReadyCondition),
                                       .status = "False",
                                       .reason = std::string(kPullingReason),
                                       .message = entry.pull.text(),
                                       .last_transition = {}});
  } else if (!image_problem.empty() ||
             (!shown.status.image_ref.empty() && (entry.observed.alive() || entry.has_image))) {
    const bool is_there = image_problem.empty();
    shown.status.conditions.push_back(
        {.type = std::string(iri::kImageReadyCondition),
         .status = is_there ? "True" : "False",
         .reason = is_there ? std::string(iri::kImageReadyCondition) : image_problem,
         .message = is_there ? std::string() : error,
         .last_transition = {}});
  }
  if (shown.status.state == MachineState::kSuspended) {
    shown.status.conditions.push_back({.type = "Running",
                                       .status = "False",
                                       .reason = "Paused",
                                       .message = PausedWords(seen.pause),
                                       .last_transition = entry.paused_since});
  }
  const GuestEnd& end = entry.record.end;
  if (end.kind == GuestEnd::Kind::kFailed || !error.empty()) {
    const bool failed = !error.empty();
    // A guest that is alive may lack a device, or have one too many.
    const bool is_alive = failed && entry.observed.alive();
    shown.status.conditions.push_back({.type = is_alive ? "DevicesReady" : "Running",
                                       .status = "False",
                                       .reason = failed ? "Failed" : end.reason,
                                       .message = failed ? error : end.message,
                                       .last_transition = failed ? WallTime() : end.time});
  }
  if (LacksIgnition(entry.record, entry.secrets)) {
    shown.status.conditions.push_back({.type = std::string(iri::kSecretsReadyCondition),
                                       .status = "False",
                                       .reason = std::string(iri::kSecretsMissingReason),
                                       .message = std::string(kIgnitionMissingWords),
                                       .last_transition = {}});
  }
  return shown;
}

rt::Task<Result<std::vector<iri::Machine>>> MachineHost::ListMachines(iri::ObjectFilter filter) {
  CO_TRY_STATUS(Known());
  std::vector<iri::Machine> listed;
  for (const auto& [id, entry] : machines_) {
    if (Matches(filter, entry->record.object.metadata)) listed.push_back(Shown(*entry));
  }
  co_return listed;
}

iri::ResourceVector MachineHost::Used(std::string_view for_uid) const {
  iri::ResourceVector used;
  for (const auto& [id, entry] : machines_) AddTo(used, entry->record.resources);
  for (const iri::Reservation& reservation : reservations_) {
    const bool own = !reservation.machine_uid.empty() && reservation.machine_uid == for_uid;
    const bool taken = OfUid(reservation.machine_uid) != nullptr;
    if (!own && !taken) AddTo(used, reservation.resources);
  }
  return used;
}

Result<MachineRecord> MachineHost::NewRecord(iri::Machine machine) const {
  const auto* const offered = FindClass(options_.classes, machine.spec.class_name);
  if (offered == nullptr) {
    return BadRequest("machine class " + Quote(machine.spec.class_name) + " is not offered");
  }
  if (machine.spec.power == iri::Power::kUnknown) {
    return BadRequest("power is neither on nor off");
  }
  TRY_STATUS(CheckSpec(machine.spec));
  TRY_STATUS(CheckEfi(machine.spec.class_name,
                      iri::AnnotationOf(machine.metadata, iri::kEfiVariablesAnnotation)));
  for (const iri::MachineVolume& volume : machine.spec.volumes) {
    if (volume.local_disk.has_value() && !volume.local_disk->image.empty()) {
      TRY_STATUS(deps_.images.Check(volume.local_disk->image));
    }
  }
  MachineRecord record;
  record.owner = deps_.folders.folder();
  record.resources = NeedsOf(offered->machine_class, machine.spec);
  record.object = std::move(machine);
  record.object.status = iri::MachineStatus();
  return record;
}

rt::Task<Result<iri::Machine>> MachineHost::CreateMachine(iri::Machine machine) {
  CO_TRY_STATUS(Known());
  CO_TRY(const rt::Gate::Permit permit, co_await admission_.Enter());
  const std::string uid(LabelOf(machine.metadata, iri::kMachineUidLabel));
  const Pointer there = OfUid(uid);
  if (there != nullptr) co_return Shown(*there);
  auto entry = std::make_shared<Entry>(options_);
  entry->secrets = TakeSecrets(machine.spec);
  CO_TRY(MachineRecord record, NewRecord(std::move(machine)));
  record.has_ignition = !entry->secrets.ignition_data.empty();
  CO_TRY_STATUS(co_await CheckFirmware(record.object.spec.class_name));
  for (const iri::MachineVolume& volume : record.object.spec.volumes) {
    if (!IsEncrypted(volume, deps_.folders)) continue;
    const auto part = PartNamed(entry->secrets.volumes, volume.name);
    if (part == entry->secrets.volumes.end()) {
      co_return BadRequest("volume " + Quote(volume.name) + " is encrypted and has no key");
    }
    CO_TRY_STATUS(KeyOf(part->connection->encryption_data));
  }
  CO_TRY_STATUS(CheckFits(record.resources, Used(uid), options_.total));
  const ClaimedRoom claimed(claimed_);
  const ClaimedRoom claimed_beside(claimed_beside_);
  CO_TRY_STATUS(co_await ClaimMachine(record.resources));
  if (machines_.size() >= kMachinesMax) {
    co_return Status(Reason::kTooManyRequests,
                     fmt::format("{} machines are the most", kMachinesMax));
  }
  constexpr int kIdLength = 16;
  iri::ObjectMetadata& metadata = record.object.metadata;
  do {
    metadata.id = "m-" + deps_.loop.random().NameSuffix(kIdLength);
  } while (machines_.contains(metadata.id));
  metadata.generation = 1;
  metadata.created_at = deps_.loop.WallNow();
  metadata.deleted_at = WallTime();
  entry->record = record;
  const std::string id = metadata.id;
  creating_.insert(id);
  Status saved = co_await PutSecrets(entry);
  if (saved.ok()) saved = co_await SaveInside(entry, std::move(record));
  creating_.erase(id);
  if (!saved.ok()) {
    // If libvirt has it nevertheless, the next look at everything finds it.
    const bool unknown = saved.Is(Reason::kTimeout) || saved.Is(Reason::kUnavailable);
    if (!unknown) CO_TRY_STATUS(co_await deps_.folders.Remove(id));
    if (unknown) work_.Spawn("machines.resync", Resync());
    co_return saved;
  }
  machines_.emplace(id, entry);
  changes_.Add(
      ObjectKind::kMachine, ChangeType::kCreated, entry->record.object.metadata, "created");
  const iri::Machine made = Shown(*entry);
  Tend(entry);
  co_return made;
}

rt::Task<Status> MachineHost::DeleteMachine(std::string id) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  if (!entry->record.is_deleted()) {
    const WallTime now = deps_.loop.WallNow();
    const auto change = [now](MachineRecord& record) {
      record.object.metadata.deleted_at = now;
      ++record.object.metadata.generation;
    };
    CO_TRY_STATUS(co_await Save(entry, change));
    CancelMaking(*entry);
    Changed(*entry, "deleted");
  }
  Tend(entry);
  co_return OkStatus();
}

rt::Task<Status> MachineHost::UpdateMachineAnnotations(std::string id, iri::StringMap annotations) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  if (entry->record.object.metadata.annotations == annotations) co_return OkStatus();
  const auto change = [&annotations](MachineRecord& record) {
    record.object.metadata.annotations = annotations;
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  Changed(*entry, "annotations");
  // It can be switched off as ever; it is not started before they are right.
  const MachineRecord& record = entry->record;
  const Status efi = CheckEfi(record.object.spec.class_name,
                              AnnotationOf(record.object.metadata, iri::kEfiVariablesAnnotation));
  if (!efi.ok()) {
    Say(record.object.metadata,
        iri::EventType::kWarning,
        "Failed",
        "Annotate",
        std::string(efi.message()));
  }
  Tend(entry);
  co_return OkStatus();
}

rt::Task<Status> MachineHost::UpdateMachinePower(std::string id, iri::Power power) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  if (power == iri::Power::kUnknown) co_return BadRequest("power is neither on nor off");
  if (entry->record.is_deleted()) co_return Conflict("machine " + Quote(id) + " is being deleted");
  const bool same = entry->record.object.spec.power == power;
  const bool starts = power == iri::Power::kOn && !entry->observed.alive();
  const bool waits =
      entry->record.started_in.empty() && entry->record.end.kind == GuestEnd::Kind::kNone;
  if (same && (!starts || waits)) {
    Tend(entry);
    co_return OkStatus();
  }
  const auto change = [power](MachineRecord& record) {
    if (record.object.spec.power != power) ++record.object.metadata.generation;
    record.object.spec.power = power;
    record.started_in.clear();
    record.end = GuestEnd();
  };
  CO_TRY_STATUS(co_await Save(entry, change));
  if (power == iri::Power::kOff) CancelMaking(*entry);
  entry->error.clear();
  Changed(*entry, "power");
  Tend(entry);
  co_return OkStatus();
}

}  // namespace berth::runtime
