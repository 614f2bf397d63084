// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "iri/annotations.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "poollet/reconcile/step.h"

namespace berth::poollet {
namespace {

using Kind = Step::Kind;

Step Do(Kind kind, std::string id, std::string part = {}) {
  return {.kind = kind, .id = std::move(id), .part = std::move(part), .reason = {}, .message = {}};
}
Step Wait(std::string reason, std::string message) {
  return {.kind = Kind::kWait,
          .id = {},
          .part = {},
          .reason = std::move(reason),
          .message = std::move(message)};
}
Step Stuck(std::string reason, std::string message) {
  return {.kind = Kind::kStuck,
          .id = {},
          .part = {},
          .reason = std::move(reason),
          .message = std::move(message)};
}

bool IsBeingDeleted(const iri::Machine& machine) {
  return !machine.metadata.deleted_at.is_zero() ||
         machine.status.state == iri::MachineState::kTerminating;
}

bool IsAlive(const iri::Machine& machine) {
  return machine.spec.power == iri::Power::kOn ||
         machine.status.state == iri::MachineState::kRunning;
}

std::string FirstWait(const Waits& waits, std::string_view what) {
  return fmt::format("{} {}: {}", what, waits.begin()->first, waits.begin()->second);
}

// The runtime lost what it was created with.
bool LacksSecrets(const iri::Machine& machine) {
  return std::ranges::any_of(machine.status.conditions, [](const auto& condition) {
    return condition.type == iri::kSecretsReadyCondition && condition.status == "False";
  });
}

// A secret that the object names is not there, or not here.
Step WaitForSecrets(const Desired& desired) {
  return Wait(std::string(iri::kSecretsMissingReason),
              desired.missing.empty() ? "its secrets are not kept on disk: waiting for the server"
                                      : desired.missing.front());
}

// What keeps a machine from being created: the first thing that is missing. Its image is the
// runtime's business.
std::optional<Step> Prerequisite(const Desired& desired,
                                 const DesiredMachine& machine,
                                 const Situation& situation) {
  if (!machine.volume_waits.empty()) {
    return Wait("VolumeNotReady", FirstWait(machine.volume_waits, "volume"));
  }
  if (!machine.nic_waits.empty()) {
    return Wait("NetworkInterfaceNotReady", FirstWait(machine.nic_waits, "network interface"));
  }
  if (!desired.missing.empty() || situation.secrets_missing) return WaitForSecrets(desired);
  return std::nullopt;
}

Step Create(const Desired& desired, const DesiredMachine& machine, const Situation& situation) {
  if (auto missing = Prerequisite(desired, machine, situation)) return *std::move(missing);
  // Sequence 12: never a second one while the outcome of the first is not known.
  if (situation.create_unknown && !situation.create_is_idempotent) {
    return Wait("CreateOutcomeUnknown", "a create was sent and its outcome is not known yet");
  }
  if (machine.moves && !situation.has_lease) {
    return Wait("NoLease", "it may be moved, so it starts only under a lease of this session");
  }
  return Do(Kind::kCreate, {});
}

// Which of several objects of one uid stays: the one that runs, else the first one made.
const iri::Machine& Keeper(std::span<const iri::Machine> observed) {
  return *std::ranges::min_element(observed, [](const auto& a, const auto& b) {
    if (IsAlive(a) != IsAlive(b)) return IsAlive(a);
    if (a.metadata.created_at != b.metadata.created_at) {
      return a.metadata.created_at < b.metadata.created_at;
    }
    return a.metadata.id < b.metadata.id;
  });
}

// D15: several objects of one uid. Those that never ran are removed; two that run are for a person.
Step Surplus(std::span<const iri::Machine> observed) {
  if (std::ranges::count_if(observed, IsAlive) > 1) {
    std::string ids;
    for (const auto& machine : observed) {
      ids += (ids.empty() ? "" : ", ") + machine.metadata.id;
    }
    return Stuck("MultipleObjects", "more than one runtime object runs for this uid: " + ids);
  }
  const iri::Machine& keeper = Keeper(observed);
  for (const auto& machine : observed) {
    if (&machine != &keeper && !IsBeingDeleted(machine)) {
      return Do(Kind::kDelete, machine.metadata.id);
    }
  }
  return Wait("RemovingSurplus", "a second object of this uid is being removed");
}

template <class Part>
const Part* Named(const std::vector<Part>& parts, std::string_view name) {
  const auto found = std::ranges::find_if(parts, [&](const Part& p) { return p.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

// Secrets and attributes may change while it is attached: they count at the next attach.
bool IsSameVolume(const iri::MachineVolume& a, const iri::MachineVolume& b) {
  if (a.device != b.device || a.local_disk.has_value() != b.local_disk.has_value()) return false;
  if (a.local_disk.has_value()) return a.local_disk->image == b.local_disk->image;
  return a.connection.has_value() && b.connection.has_value() &&
         a.connection->driver == b.connection->driver &&
         a.connection->handle == b.connection->handle;
}

bool IsLarger(const iri::MachineVolume& wanted, const iri::MachineVolume& there) {
  return wanted.connection.has_value() && there.connection.has_value() &&
         wanted.connection->effective_storage_bytes > there.connection->effective_storage_bytes;
}

// A guest that runs has opened its disk; before that a key may be the wrong one. A foreign runtime
// that shows none may have it all the same.
bool NeedsKey(const iri::MachineVolume& wanted,
              const iri::MachineVolume& there,
              const iri::Machine& machine,
              const Situation& situation) {
  if (!wanted.connection.has_value() || !there.connection.has_value()) return false;
  if (situation.secrets_missing || machine.status.state == iri::MachineState::kRunning)
    return false;
  const iri::SecretMap& key = wanted.connection->encryption_data;
  const iri::SecretMap& shown = there.connection->encryption_data;
  if (key.empty() || (shown.empty() && !situation.create_is_idempotent)) return false;
  return shown != key;
}

std::optional<Step> VolumeStep(const DesiredMachine& desired,
                               const iri::Machine& machine,
                               const Situation& situation) {
  const std::string& id = machine.metadata.id;
  for (const auto& volume : machine.spec.volumes) {
    // D13: a volume that is not ready for a while stays attached.
    if (desired.volume_waits.contains(volume.name)) continue;
    const auto* wanted = Named(desired.object.spec.volumes, volume.name);
    if (wanted == nullptr || !IsSameVolume(*wanted, volume)) {
      return Do(Kind::kDetachVolume, id, volume.name);
    }
    if (IsLarger(*wanted, volume) || NeedsKey(*wanted, volume, machine, situation)) {
      return Do(Kind::kUpdateVolume, id, volume.name);
    }
  }
  for (const auto& volume : desired.object.spec.volumes) {
    if (Named(machine.spec.volumes, volume.name) != nullptr) continue;
    if (situation.secrets_missing && volume.connection.has_value()) {
      return Wait(
          "SecretsMissing",
          fmt::format("volume {}: waiting for the server to send its secrets", volume.name));
    }
    return Do(Kind::kAttachVolume, id, volume.name);
  }
  return std::nullopt;
}

bool HasEnded(const iri::Machine& machine) {
  return machine.status.state == iri::MachineState::kStopped ||
         machine.status.state == iri::MachineState::kTerminated;
}

// Of another Network. An interface that was attached when no server said which it is stays as it is
// while its guest runs; one of our runtimes learns it before the next start.
bool IsOfOtherNetwork(const iri::MachineNic& wanted,
                      const iri::MachineNic& there,
                      const iri::Machine& machine,
                      const Situation& situation) {
  const auto now = wanted.attributes.find(iri::kNetworkUidAttribute);
  const auto before = there.attributes.find(iri::kNetworkUidAttribute);
  if (now == wanted.attributes.end()) return false;
  if (before != there.attributes.end()) return now->second != before->second;
  return situation.create_is_idempotent && HasEnded(machine);
}

// What the server says beside it came later than some guests, and nothing else depends on it.
iri::MachineNic AsUsersWroteIt(iri::MachineNic nic) {
  for (const std::string_view key : iri::kServersNicAttributes) {
    nic.attributes.erase(std::string(key));
  }
  return nic;
}

std::optional<Step> NicStep(const DesiredMachine& desired,
                            const iri::Machine& machine,
                            const Situation& situation) {
  const std::string& id = machine.metadata.id;
  for (const auto& nic : machine.spec.nics) {
    if (desired.nic_waits.contains(nic.name)) continue;
    const auto* wanted = Named(desired.object.spec.nics, nic.name);
    const bool stays = wanted != nullptr && AsUsersWroteIt(*wanted) == AsUsersWroteIt(nic) &&
                       !IsOfOtherNetwork(*wanted, nic, machine, situation);
    if (!stays) return Do(Kind::kDetachNic, id, nic.name);
  }
  for (const auto& nic : desired.object.spec.nics) {
    if (Named(machine.spec.nics, nic.name) == nullptr) return Do(Kind::kAttachNic, id, nic.name);
  }
  return std::nullopt;
}

bool RestartsAfter(Death death, RestartPolicy policy) {
  if (death == Death::kHost) return true;  // 6.7: it did not end by itself
  if (policy == RestartPolicy::kAlways) return true;
  return death == Death::kFailed && policy == RestartPolicy::kOnFailure;
}

bool IsToBeSwitchedOff(const DesiredMachine& desired, const iri::Machine& machine) {
  return desired.object.spec.power == iri::Power::kOff && machine.spec.power != iri::Power::kOff;
}

// REQUIRES: it is not to be switched off.
Step PowerStep(const DesiredMachine& desired,
               const iri::Machine& machine,
               const Situation& situation) {
  const std::string& id = machine.metadata.id;
  if (desired.object.spec.power == iri::Power::kOff) return {};
  const Death death = DeathOf(machine);
  const bool starts = machine.spec.power == iri::Power::kOff ||
                      (death != Death::kNone && RestartsAfter(death, desired.restart));
  if (!starts) return {};
  if (desired.moves && !situation.has_lease) {
    return Wait("NoLease", "it may be moved, so it starts only under a lease of this session");
  }
  if (death == Death::kFailed && !situation.may_restart) {
    return Wait("RestartBackoff", "it failed and is started again after a pause");
  }
  return Do(Kind::kPowerOn, id);
}

}  // namespace

Death DeathOf(const iri::Machine& machine) {
  if (machine.spec.power != iri::Power::kOn) return Death::kNone;
  if (machine.status.state == iri::MachineState::kStopped) return Death::kShutDown;
  if (machine.status.state != iri::MachineState::kTerminated) return Death::kNone;
  const bool host = std::ranges::any_of(machine.status.conditions, [](const auto& condition) {
    return condition.reason == "HostLostPower" || condition.reason == "Fenced";
  });
  return host ? Death::kHost : Death::kFailed;
}

iri::Machine MachineToCreate(const DesiredMachine& desired, const Situation& situation) {
  iri::Machine machine = desired.object;
  // 6.4: where a second create makes a second machine, none of them boots before there is one. What
  // a runtime says about its creates is believed once.
  if (!situation.create_is_idempotent || situation.create_repeated) {
    machine.spec.power = iri::Power::kOff;
  }
  machine.metadata.annotations[std::string(iri::kIriMachineGenerationAnnotation)] = "0";
  return machine;
}

iri::StringMap AnnotationsFor(const DesiredMachine& desired, const iri::Machine& observed) {
  iri::StringMap annotations = observed.metadata.annotations;  // the runtime may have its own
  std::erase_if(annotations, [](const auto& entry) {
    return entry.first.starts_with(iri::kMachineDownwardPrefix) ||
           entry.first == iri::kOnPoolLossAnnotation || entry.first == iri::kEfiVariablesAnnotation;
  });
  for (const auto& [key, value] : desired.object.metadata.annotations) annotations[key] = value;
  // What the runtime has to have acted on before its status is of this generation of the machine.
  if (observed.metadata.generation > 0) {
    annotations[std::string(iri::kIriMachineGenerationAnnotation)] =
        std::to_string(observed.metadata.generation);
  }
  return annotations;
}

namespace {

// The runtime's own generation goes along, and is no reason by itself: every change would be
// followed by another call, and never by the last one if a runtime counts that, too.
bool NeedsAnnotations(const DesiredMachine& desired, const iri::Machine& observed) {
  iri::StringMap wanted = AnnotationsFor(desired, observed);
  iri::StringMap there = observed.metadata.annotations;
  for (iri::StringMap* const annotations : {&wanted, &there}) {
    annotations->erase(std::string(iri::kIriMachineGenerationAnnotation));
  }
  return wanted != there;
}

}  // namespace

Step NextMachineStep(const Desired& desired,
                     std::span<const iri::Machine> observed,
                     const Situation& situation) {
  const auto& machine = std::get<DesiredMachine>(desired.body);
  if (observed.empty()) return Create(desired, machine, situation);
  if (observed.size() > 1) return Surplus(observed);
  const iri::Machine& there = observed.front();
  if (IsBeingDeleted(there)) {
    return Wait("DeletedByOthers", "its runtime object is being deleted, not by us");
  }
  // Before anything that may fail and is tried again: a guest that does not let go of a disk is not
  // to run on because of that.
  if (IsToBeSwitchedOff(machine, there)) return Do(Kind::kPowerOff, there.metadata.id);
  if (auto step = VolumeStep(machine, there, situation)) return *std::move(step);
  if (auto step = NicStep(machine, there, situation)) return *std::move(step);
  if (NeedsAnnotations(machine, there)) return Do(Kind::kAnnotate, there.metadata.id);
  Step power = PowerStep(machine, there, situation);
  const bool lacks = LacksSecrets(there) && situation.create_is_idempotent;
  if (!lacks) return power;
  // An assignment without it says that the machine has none any more, if nothing is missing.
  const bool is_known = !situation.secrets_missing &&
                        (!machine.object.spec.ignition_data.empty() || desired.missing.empty());
  if (is_known) return Do(Kind::kGiveIgnition, there.metadata.id);
  const bool would_run =
      power.kind == Kind::kPowerOn ||
      (power.kind == Kind::kSettled && there.status.state == iri::MachineState::kPending);
  return would_run ? WaitForSecrets(desired) : power;
}

}  // namespace berth::poollet
