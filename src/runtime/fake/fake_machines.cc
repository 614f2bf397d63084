// SPDX-License-Identifier: Apache-2.0
// Machines and their guests on a fake host.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/labels.h"
#include "runtime/fake/fake_host_state.h"

namespace berth::runtime {

using iri::ChangeType;
using iri::MachineState;
using iri::ObjectKind;
using Phase = FakeGuest::Phase;

namespace {

MachineState StateOf(const FakeMachine& machine) {
  if (machine.gone_at.has_value()) return MachineState::kTerminating;
  switch (machine.guest.phase) {
    case Phase::kOff: return machine.waits ? MachineState::kPending : MachineState::kStopped;
    case Phase::kBooting: return MachineState::kPending;
    case Phase::kRunning:
    case Phase::kStopping: return MachineState::kRunning;
    case Phase::kDead: return MachineState::kTerminated;
  }
  return MachineState::kUnknown;
}

template <class Parts>
auto PartNamed(Parts& parts, std::string_view name) {
  return std::ranges::find_if(parts, [&](const auto& part) { return part.name == name; });
}

int64_t LocalDiskBytes(const iri::Machine& machine) {
  int64_t bytes = 0;
  for (const iri::MachineVolume& volume : machine.spec.volumes) {
    if (volume.local_disk.has_value()) bytes += volume.local_disk->size_bytes;
  }
  return bytes;
}

// The names of disks and interfaces are unique within a machine.
Status CheckParts(const iri::MachineSpec& spec) {
  const auto check = [](const auto& parts, std::string_view what) -> Status {
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      if (part->name.empty()) return BadRequest("a " + std::string(what) + " has no name");
      const auto same = [&](const auto& other) { return other.name == part->name; };
      if (std::any_of(parts.begin(), part, same)) {
        return BadRequest(std::string(what) + " " + Quote(part->name) + " is there twice");
      }
    }
    return OkStatus();
  };
  TRY_STATUS(check(spec.volumes, "volume"));
  return check(spec.nics, "network interface");
}

bool Moves(const iri::Machine& machine) {
  const auto policy = machine.metadata.annotations.find(iri::kOnPoolLossAnnotation);
  return policy != machine.metadata.annotations.end() && policy->second == iri::kOnPoolLossMove;
}

}  // namespace

Result<FakeMachine*> FakeHostState::FindMachine(std::string_view id) {
  const auto found = machines_.find(id);
  if (found == machines_.end()) return NotFound("machine " + Quote(id) + " not found");
  return &found->second;
}

iri::ResourceVector FakeHostState::Needs(const iri::Machine& machine) const {
  iri::ResourceVector needs;
  const auto found = std::ranges::find(
      options_.machine_classes, machine.spec.class_name, &iri::MachineClass::name);
  if (found != options_.machine_classes.end()) needs = ToResourceVector(*found);
  if (const int64_t bytes = LocalDiskBytes(machine); bytes > 0) {
    needs[std::string(iri::kStorage)] += bytes;
  }
  return needs;
}

Status FakeHostState::MayStart(const iri::Machine& machine, Time now) const {
  if (has_processes()) return OkStatus();  // it is held instead
  if (options_.flavor == FakeFlavor::kForeign || options_.lies.ignores_leases) return OkStatus();
  const std::string_view uid = LabelOf(machine.metadata, iri::kMachineUidLabel);
  const auto lease = leases_.find(uid);
  if (lease != leases_.end() && (lease->second.fenced || lease->second.deadline <= now)) {
    return Forbidden("machine uid " + Quote(uid) + " is fenced: its lease has run out");
  }
  if (Moves(machine) && lease == leases_.end()) {
    return Forbidden("machine uid " + Quote(uid) + " may be moved and has no lease here");
  }
  return OkStatus();
}

void FakeHostState::StartGuest(FakeMachine& machine, const FakeClock& clock) {
  FakeGuest& guest = machine.guest;
  guest = FakeGuest();
  guest.phase = Phase::kBooting;
  guest.started = clock.now;
  guest.until = clock.now + options_.times.boot;
  guest.held = has_processes() && Moves(machine.object);
  if (random_.Chance(options_.faults.boot_fails)) guest.boot_end = FakeGuest::BootEnd::kDies;
}

void FakeHostState::KillGuest(FakeMachine& machine, std::string why, const FakeClock& clock) {
  Said(ObjectKind::kMachine,
       machine.object.metadata,
       iri::EventType::kWarning,
       why,
       "the guest is dead: " + why,
       clock);
  machine.guest = FakeGuest();
  machine.guest.phase = Phase::kDead;
  machine.guest.why = std::move(why);
  Changed(ObjectKind::kMachine, ChangeType::kChanged, machine.object.metadata, "state");
}

void FakeHostState::ShutDown(FakeMachine& machine, const FakeClock& clock) {
  FakeGuest& guest = machine.guest;
  if (!guest.alive() || guest.phase == Phase::kStopping) return;
  guest.phase = Phase::kStopping;
  guest.held = false;
  guest.until = clock.now + options_.times.shutdown;
}

void FakeHostState::AdvanceGuest(FakeMachine& machine, const FakeClock& clock) {
  FakeGuest& guest = machine.guest;
  if (guest.phase == Phase::kRunning) {
    if (guest.crash_at.has_value() && *guest.crash_at <= clock.now) {
      KillGuest(machine, "Crashed", clock);
    }
    return;
  }
  const bool ends = guest.phase == Phase::kBooting || guest.phase == Phase::kStopping;
  if (!ends || guest.held || guest.until > clock.now) return;
  if (guest.phase == Phase::kBooting) {
    if (guest.boot_end == FakeGuest::BootEnd::kDies) return KillGuest(machine, "BootFailed", clock);
    guest.phase = Phase::kRunning;
    if (const double rate = options_.faults.crashes_per_hour; rate > 0) {
      const double hours = -std::log(1 - random_.Unit()) / rate;
      guest.crash_at =
          clock.now + Duration::Nanos(static_cast<int64_t>(std::min(hours, 1e6) * 3.6e12));
    }
    Said(ObjectKind::kMachine,
         machine.object.metadata,
         iri::EventType::kNormal,
         "Booted",
         "the guest runs",
         clock);
  } else {
    guest = FakeGuest();
    // It was switched on again while it went down.
    const bool wanted =
        machine.object.spec.power == iri::Power::kOn && !machine.gone_at.has_value();
    if (wanted && MayStart(machine.object, clock.now).ok()) StartGuest(machine, clock);
  }
  Changed(ObjectKind::kMachine, ChangeType::kChanged, machine.object.metadata, "state");
}

Result<iri::Machine> FakeHostState::CreateMachine(const FakeClock& clock, iri::Machine machine) {
  Advance(clock);
  const std::string uid(LabelOf(machine.metadata, iri::kMachineUidLabel));
  if (IsIdempotent() && !uid.empty()) {
    for (const auto& [id, there] : machines_) {
      if (LabelOf(there.object.metadata, iri::kMachineUidLabel) == uid) {
        return Shown(there);
      }
    }
  }
  const auto offered = std::ranges::find(
      options_.machine_classes, machine.spec.class_name, &iri::MachineClass::name);
  if (offered == options_.machine_classes.end()) {
    return BadRequest("machine class " + Quote(machine.spec.class_name) + " is not offered");
  }
  TRY_STATUS(CheckParts(machine.spec));
  if (machine.spec.power == iri::Power::kOn) TRY_STATUS(MayStart(machine, clock.now));
  TRY_STATUS(CheckRoom(Needs(machine), uid));

  FakeMachine made;
  made.object.metadata = std::move(machine.metadata);
  made.object.metadata.id = NewId("m-");
  made.object.metadata.generation = 1;
  made.object.metadata.created_at = clock.wall;
  made.object.metadata.deleted_at = WallTime();
  made.object.spec = std::move(machine.spec);
  if (made.object.spec.power == iri::Power::kOn) StartGuest(made, clock);
  const std::string id = made.object.metadata.id;
  FakeMachine& kept = machines_.emplace(id, std::move(made)).first->second;
  Changed(ObjectKind::kMachine, ChangeType::kCreated, kept.object.metadata, "created");
  return Shown(kept);
}

Status FakeHostState::DeleteMachine(const FakeClock& clock, std::string_view id) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  if (machine->gone_at.has_value()) return OkStatus();
  machine->object.metadata.deleted_at = clock.wall;
  const bool sticks = random_.Chance(options_.faults.delete_sticks);
  const Duration takes = sticks                   ? options_.times.stuck
                         : machine->guest.alive() ? options_.times.shutdown
                                                  : Duration();
  machine->gone_at = clock.now + takes;
  if (machine->guest.alive()) {
    machine->guest.phase = Phase::kStopping;
    machine->guest.held = false;
    machine->guest.until = *machine->gone_at;
  }
  Changed(ObjectKind::kMachine, ChangeType::kChanged, machine->object.metadata, "deletion");
  Advance(clock);
  return OkStatus();
}

void FakeHostState::Bump(FakeMachine& machine, std::string_view what) {
  ++machine.object.metadata.generation;
  Changed(ObjectKind::kMachine, ChangeType::kChanged, machine.object.metadata, what);
}

Status FakeHostState::SetAnnotations(const FakeClock& clock,
                                     std::string_view id,
                                     iri::StringMap annotations) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  if (machine->object.metadata.annotations == annotations) return OkStatus();
  machine->object.metadata.annotations = std::move(annotations);
  Changed(ObjectKind::kMachine, ChangeType::kChanged, machine->object.metadata, "annotations");
  return OkStatus();
}

Status FakeHostState::SetPower(const FakeClock& clock, std::string_view id, iri::Power power) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  if (power == iri::Power::kUnknown) return BadRequest("power is neither on nor off");
  if (machine->gone_at.has_value()) {
    return Conflict("machine " + Quote(id) + " is being deleted");
  }
  const bool starts = power == iri::Power::kOn && !machine->guest.alive();
  if (starts) TRY_STATUS(MayStart(machine->object, clock.now));
  const bool stops = power == iri::Power::kOff && machine->guest.alive();
  if (!starts && !stops && machine->object.spec.power == power) return OkStatus();
  machine->object.spec.power = power;
  machine->waits = starts && machine->lacks_ignition;
  if (machine->waits) {
    machine->guest = FakeGuest();
  } else if (starts) {
    StartGuest(*machine, clock);
  }
  if (stops) ShutDown(*machine, clock);
  if (power == iri::Power::kOff && !machine->guest.alive()) machine->guest = FakeGuest();
  Bump(*machine, "power");
  return OkStatus();
}

Status FakeHostState::SetIgnition(const FakeClock& clock, iri::Ignition ignition) {
  Advance(clock);
  for (auto& [id, machine] : machines_) {
    const iri::Machine& object = machine.object;
    if (LabelOf(object.metadata, iri::kMachineUidLabel) != ignition.machine_uid) continue;
    machine.object.spec.ignition_data = std::move(ignition.data);
    machine.lacks_ignition = false;
    const bool starts = std::exchange(machine.waits, false) && !machine.gone_at.has_value();
    if (starts && MayStart(object, clock.now).ok()) StartGuest(machine, clock);
    Changed(ObjectKind::kMachine, ChangeType::kChanged, object.metadata, "secrets");
    return OkStatus();
  }
  return NotFound("no machine of uid " + Quote(ignition.machine_uid));
}

Status FakeHostState::AttachVolume(const FakeClock& clock,
                                   std::string_view id,
                                   iri::MachineVolume volume) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  auto& volumes = machine->object.spec.volumes;
  if (volume.name.empty()) return BadRequest("a volume has no name");
  if (PartNamed(volumes, volume.name) != volumes.end()) {
    return AlreadyExists("machine " + Quote(id) + " has a volume " + Quote(volume.name));
  }
  if (volume.local_disk.has_value()) {
    const iri::ResourceVector more = {{std::string(iri::kStorage), volume.local_disk->size_bytes}};
    TRY_STATUS(CheckRoom(more, LabelOf(machine->object.metadata, iri::kMachineUidLabel)));
  }
  volumes.push_back(std::move(volume));
  Bump(*machine, "volumes");
  return OkStatus();
}

Status FakeHostState::DetachVolume(const FakeClock& clock,
                                   std::string_view id,
                                   std::string_view name) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  auto& volumes = machine->object.spec.volumes;
  const auto found = PartNamed(volumes, name);
  if (found == volumes.end()) {
    return NotFound("machine " + Quote(id) + " has no volume " + Quote(name));
  }
  volumes.erase(found);
  Bump(*machine, "volumes");
  return OkStatus();
}

Status FakeHostState::ResizeVolume(const FakeClock& clock,
                                   std::string_view id,
                                   const iri::MachineVolume& to) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  auto& volumes = machine->object.spec.volumes;
  const auto found = PartNamed(volumes, to.name);
  if (found == volumes.end()) {
    return NotFound("machine " + Quote(id) + " has no volume " + Quote(to.name));
  }
  const bool same = found->connection.has_value() && to.connection.has_value() &&
                    found->connection->driver == to.connection->driver &&
                    found->connection->handle == to.connection->handle;
  if (!same) {
    return BadRequest("volume " + Quote(to.name) +
                      ": only size and key of a connected volume can change");
  }
  if (*found == to) return OkStatus();
  found->connection->effective_storage_bytes = to.connection->effective_storage_bytes;
  if (!to.connection->encryption_data.empty()) {
    found->connection->encryption_data = to.connection->encryption_data;
  }
  Bump(*machine, "volumes");
  return OkStatus();
}

Status FakeHostState::AttachNic(const FakeClock& clock, std::string_view id, iri::MachineNic nic) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  auto& nics = machine->object.spec.nics;
  if (nic.name.empty()) return BadRequest("a network interface has no name");
  if (PartNamed(nics, nic.name) != nics.end()) {
    return AlreadyExists("machine " + Quote(id) + " has a network interface " + Quote(nic.name));
  }
  nics.push_back(std::move(nic));
  Bump(*machine, "network interfaces");
  return OkStatus();
}

Status FakeHostState::DetachNic(const FakeClock& clock,
                                std::string_view id,
                                std::string_view name) {
  Advance(clock);
  TRY(FakeMachine* const machine, FindMachine(id));
  auto& nics = machine->object.spec.nics;
  const auto found = PartNamed(nics, name);
  if (found == nics.end()) {
    return NotFound("machine " + Quote(id) + " has no network interface " + Quote(name));
  }
  nics.erase(found);
  Bump(*machine, "network interfaces");
  return OkStatus();
}

Result<std::string> FakeHostState::Exec(const FakeClock& clock, std::string_view id) {
  Advance(clock);
  TRY(const FakeMachine* const machine, FindMachine(id));
  if (machine->guest.phase != Phase::kRunning) {
    return Conflict("machine " + Quote(id) + " does not run");
  }
  constexpr int kTokenLength = 32;
  return "fake://" + options_.name + "/exec/" + std::string(id) +
         "?token=" + random_.NameSuffix(kTokenLength);
}

void FakeHostState::CrashGuest(const FakeClock& clock,
                               std::string_view machine_id,
                               std::string why) {
  Advance(clock);
  const Result<FakeMachine*> machine = FindMachine(machine_id);
  if (machine.ok() && (*machine)->guest.alive()) KillGuest(**machine, std::move(why), clock);
}

std::vector<iri::GuestProcess> FakeHostState::Guests(const FakeClock& clock) {
  Advance(clock);
  std::vector<iri::GuestProcess> guests;
  for (const auto& [id, machine] : machines_) {
    if (!machine.guest.alive() || machine.guest.pid == 0) continue;
    iri::GuestProcess guest;
    guest.machine_uid = LabelOf(machine.object.metadata, iri::kMachineUidLabel);
    guest.pid = machine.guest.pid;
    guest.start_ticks = machine.guest.start_ticks;
    guest.held = machine.guest.held;
    guests.push_back(std::move(guest));
  }
  return guests;
}

Status FakeHostState::ResumeGuest(const FakeClock& clock, std::string_view machine_uid) {
  Advance(clock);
  for (auto& [id, machine] : machines_) {
    if (LabelOf(machine.object.metadata, iri::kMachineUidLabel) != machine_uid) continue;
    if (!machine.guest.alive()) continue;
    if (!machine.guest.held) return OkStatus();
    machine.guest.held = false;
    if (machine.guest.phase == Phase::kBooting) {
      machine.guest.until = clock.now + options_.times.boot;
    }
    Changed(ObjectKind::kMachine, ChangeType::kChanged, machine.object.metadata, "resumed");
    return OkStatus();
  }
  return NotFound("no guest of machine uid " + Quote(machine_uid) + " is alive");
}

Result<std::vector<std::string>> FakeHostState::LogsOf(const FakeClock& clock,
                                                       std::string_view machine_uid) {
  Advance(clock);
  const bool runs = std::ranges::any_of(machines_, [&](const auto& entry) {
    return LabelOf(entry.second.object.metadata, iri::kMachineUidLabel) == machine_uid &&
           entry.second.guest.phase == Phase::kRunning;
  });
  if (!runs) return NotFound("no guest of machine uid " + Quote(machine_uid) + " runs");
  std::vector<std::string> lines;
  for (const StoredEvent& stored : events_) {
    if (LabelOf(stored.event.involved, iri::kMachineUidLabel) != machine_uid) continue;
    lines.push_back(FormatRfc3339(stored.event.time) + " " + stored.event.reason + " " +
                    stored.event.message);
  }
  return lines;
}

void FakeHostState::SetProcess(std::string_view machine_id, int64_t pid, uint64_t start_ticks) {
  const Result<FakeMachine*> machine = FindMachine(machine_id);
  if (!machine.ok()) return;
  (*machine)->guest.pid = pid;
  (*machine)->guest.start_ticks = start_ticks;
  Changed(ObjectKind::kMachine, ChangeType::kChanged, (*machine)->object.metadata, "process");
}

void FakeHostState::ShutDownGuestFromInside(const FakeClock& clock, std::string_view machine_id) {
  Advance(clock);
  const Result<FakeMachine*> machine = FindMachine(machine_id);
  if (!machine.ok() || !(*machine)->guest.alive()) return;
  (*machine)->guest = FakeGuest();
  Changed(ObjectKind::kMachine, ChangeType::kChanged, (*machine)->object.metadata, "state");
}

iri::Machine FakeHostState::Shown(const FakeMachine& machine) const {
  iri::Machine shown = machine.object;
  shown.status = iri::MachineStatus();
  shown.status.observed_generation = shown.metadata.generation;
  shown.status.state = StateOf(machine);
  const bool lies = options_.lies.reports_running && shown.spec.power == iri::Power::kOn &&
                    !machine.gone_at.has_value();
  if (lies) shown.status.state = MachineState::kRunning;
  const auto attached = machine.guest.phase == Phase::kBooting ? iri::AttachmentState::kPending
                                                               : iri::AttachmentState::kAttached;
  for (const iri::MachineVolume& volume : shown.spec.volumes) {
    shown.status.volumes.push_back({.name = volume.name,
                                    .handle = volume.connection.has_value()
                                                  ? volume.connection->handle
                                                  : shown.metadata.id + "/" + volume.name,
                                    .state = attached});
    if (volume.local_disk.has_value() && shown.status.image_ref.empty()) {
      shown.status.image_ref = volume.local_disk->image;
    }
  }
  for (const iri::MachineNic& nic : shown.spec.nics) {
    shown.status.nics.push_back(
        {.name = nic.name, .handle = shown.metadata.id + "/" + nic.name, .state = attached});
  }
  if (machine.guest.phase == Phase::kDead && !lies) {
    shown.status.conditions.push_back({.type = "Running",
                                       .status = "False",
                                       .reason = machine.guest.why,
                                       .message = "the guest is dead: " + machine.guest.why,
                                       .last_transition = {}});
  }
  if (machine.lacks_ignition) {
    shown.status.conditions.push_back({.type = std::string(iri::kSecretsReadyCondition),
                                       .status = "False",
                                       .reason = std::string(iri::kSecretsMissingReason),
                                       .message = "its ignition is gone with the power",
                                       .last_transition = {}});
  }
  return shown;
}

std::vector<iri::Machine> FakeHostState::ShowMachines(const FakeClock& clock,
                                                      const iri::ObjectFilter& filter) {
  Advance(clock);
  std::vector<iri::Machine> shown;
  for (const auto& [id, machine] : machines_) {
    if (Matches(filter, machine.object.metadata) && !Hides()) {
      shown.push_back(Shown(machine));
    }
  }
  return shown;
}

}  // namespace berth::runtime
