// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/report.h"

#include <optional>
#include <utility>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/labels.h"

namespace berth::poollet {
namespace {

using Kind = Step::Kind;

ObjectReport Begin(const Desired& desired) {
  ObjectReport report;
  report.uid = desired.uid;
  report.placement = desired.placement;
  report.kind = desired.kind;
  report.observed_generation = desired.generation;
  return report;
}

std::string RuntimeId(const Progress& progress, const std::string& id) {
  return progress.runtime + "://" + id;
}

bool IsHeldUp(const Step& step) { return step.kind == Kind::kWait || step.kind == Kind::kStuck; }

ReportCondition Condition(std::string type,
                          bool is_true,
                          std::string reason,
                          std::string text = {}) {
  return {.type = std::move(type),
          .is_true = is_true,
          .reason = std::move(reason),
          .message = std::move(text)};
}

// Ready=False with whatever holds it up, most telling first; nullopt-like empty reason if nothing
// does.
ReportCondition HeldUp(const Progress& progress, std::string reason, std::string text) {
  if (progress.step.kind == Kind::kStuck) {
    return Condition("Ready", false, progress.step.reason, progress.step.message);
  }
  if (!progress.error.empty()) return Condition("Ready", false, "RuntimeError", progress.error);
  if (IsHeldUp(progress.step)) {
    return Condition("Ready", false, progress.step.reason, progress.step.message);
  }
  return Condition("Ready", false, std::move(reason), std::move(text));
}

// Of the whole, and of each of its parts.
ReportCondition PrerequisitesMet(const Desired& desired) {
  std::string text;
  const auto add = [&text](const std::string& missing) {
    text += (text.empty() ? "" : "; ") + missing;
  };
  if (const auto* const machine = std::get_if<DesiredMachine>(&desired.body)) {
    for (const Waits* const waits : {&machine->volume_waits, &machine->nic_waits}) {
      for (const auto& [name, what] : *waits) add(name + ": " + what);
    }
  }
  for (const auto& missing : desired.missing) add(missing);
  if (text.empty()) return Condition("PrerequisitesMet", true, "PrerequisitesMet");
  return Condition("PrerequisitesMet", false, "PrerequisiteMissing", std::move(text));
}

struct PartWords {
  std::string_view condition;  // "VolumesReady"
  std::string_view not_ready;  // "VolumeNotReady"
};

ReportCondition PartsReady(const PartWords& words,
                           const Waits& waits,
                           const std::vector<iri::AttachmentStatus>& parts,
                           size_t wanted) {
  const std::string type(words.condition);
  for (const auto& [name, what] : waits) {
    return Condition(type, false, std::string(words.not_ready), name + ": " + what);
  }
  for (const auto& part : parts) {
    if (part.state != iri::AttachmentState::kAttached) {
      return Condition(type, false, std::string(words.not_ready), part.name + ": not attached yet");
    }
  }
  if (parts.size() < wanted) {
    return Condition(type, false, std::string(words.not_ready), "not all are attached yet");
  }
  return Condition(type, true, type);
}

std::vector<ReportPart> Parts(const std::vector<iri::AttachmentStatus>& parts) {
  std::vector<ReportPart> out;
  for (const auto& part : parts) {
    out.push_back({.name = part.name,
                   .handle = part.handle,
                   .state = std::string(iri::AttachmentStateName(part.state))});
  }
  return out;
}

std::string WhyDead(const iri::Machine& machine) {
  for (const auto& condition : machine.status.conditions) {
    if (condition.status == "False" && !condition.message.empty()) return condition.message;
  }
  return "the guest ended";
}

// What the runtime says about a guest that should run and does not.
std::string WhyNotRunning(const iri::Machine& machine) {
  for (const auto& condition : machine.status.conditions) {
    if (condition.type == "Running" && condition.status == "False") return condition.message;
  }
  return {};
}

// Of a machine: what it names is there, was sent to this host, and is still in its memory.
ReportCondition SecretsReady(const Desired& desired,
                             std::span<const iri::Machine> observed,
                             const Progress& progress) {
  const std::string type(iri::kSecretsReadyCondition);
  const std::string reason(iri::kSecretsMissingReason);
  if (!desired.missing.empty()) return Condition(type, false, reason, desired.missing.front());
  for (const iri::Machine& machine : observed) {
    for (const auto& condition : machine.status.conditions) {
      if (condition.type == type && condition.status == "False") {
        return Condition(type, false, reason, condition.message);
      }
    }
  }
  if (observed.empty() && progress.secrets_missing) {
    return Condition(type, false, reason, "waiting for the server to send them");
  }
  return Condition(type, true, type);
}

// The runtime's word on the machine's image; nullopt if it has none to say.
std::optional<ReportCondition> ImageReady(const iri::MachineStatus& status) {
  for (const auto& condition : status.conditions) {
    if (condition.type != iri::kImageReadyCondition) continue;
    return Condition(
        condition.type, condition.status == "True", condition.reason, condition.message);
  }
  return std::nullopt;
}

// The same of a volume.
std::optional<ReportCondition> ImageReady(const iri::Volume& volume) {
  if (volume.spec.image.empty()) return std::nullopt;
  const std::string type(iri::kImageReadyCondition);
  const std::string_view problem = AnnotationOf(volume.metadata, iri::kImageProblemAnnotation);
  if (!problem.empty()) {
    return Condition(type,
                     false,
                     std::string(problem),
                     std::string(AnnotationOf(volume.metadata, iri::kProblemAnnotation)));
  }
  if (volume.status.state != iri::VolumeState::kAvailable) return std::nullopt;
  return Condition(type, true, type);
}

// What it shows is older than what it was last told. A runtime that says 0 does not count.
bool IsBehind(const iri::Machine& machine) {
  const auto told = ParseInt(AnnotationOf(machine.metadata, iri::kIriMachineGenerationAnnotation));
  const int64_t seen = machine.status.observed_generation;
  return told.has_value() && seen > 0 && seen < *told;
}

// Whoever reads only the reason must not take it for one that has ended: what else is in the way is
// said behind that.
ReportCondition Paused(const iri::Machine& machine, const Progress& progress) {
  std::string text = WhyNotRunning(machine);
  const std::string more = HeldUp(progress, {}, {}).message;
  if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  return Condition("Ready", false, "Paused", std::move(text));
}

ReportCondition MachineReady(const iri::Machine& machine, const Progress& progress) {
  switch (machine.status.state) {
    case iri::MachineState::kRunning:
      if (progress.step.kind == Kind::kStuck) return HeldUp(progress, {}, {});
      return Condition("Ready", true, "Running", progress.error);
    case iri::MachineState::kTerminating: return Condition("Ready", false, "Terminating");
    case iri::MachineState::kTerminated: {
      const std::string why = WhyDead(machine);
      if (progress.step.kind == Kind::kWait) {
        return Condition("Ready", false, progress.step.reason, why + "; " + progress.step.message);
      }
      return HeldUp(progress, "Terminated", why);
    }
    case iri::MachineState::kPending: {
      const std::string why = WhyNotRunning(machine);
      return HeldUp(progress, why.empty() ? "Pending" : "RuntimeError", why);
    }
    case iri::MachineState::kStopped: return HeldUp(progress, "Shutdown", {});
    case iri::MachineState::kSuspended: return Paused(machine, progress);
    case iri::MachineState::kUnknown: break;
  }
  return HeldUp(progress, "StateUnknown", "the runtime reports a state that we do not know");
}

}  // namespace

std::string_view MachineStateWord(iri::MachineState state) {
  switch (state) {
    case iri::MachineState::kPending: return "Pending";
    case iri::MachineState::kRunning: return "Running";
    case iri::MachineState::kSuspended: return "Shutdown";
    case iri::MachineState::kTerminated: return "Terminated";
    case iri::MachineState::kTerminating: return "Terminating";
    case iri::MachineState::kStopped: return "Shutdown";
    case iri::MachineState::kUnknown: break;
  }
  return "Pending";
}

ObjectReport ReportMachine(const Desired& desired,
                           std::span<const iri::Machine> observed,
                           const Progress& progress) {
  const auto& machine = std::get<DesiredMachine>(desired.body);
  ObjectReport report = Begin(desired);
  report.state = progress.phase == Progress::Phase::kRemoving ? "Terminating" : "Pending";
  report.is_leased = machine.moves && progress.is_armed;
  iri::MachineStatus status;
  ReportCondition ready = HeldUp(progress, "Pending", "not created yet");
  if (!observed.empty()) {
    const iri::Machine& there = observed.front();
    status = there.status;
    report.runtime_id = RuntimeId(progress, there.metadata.id);
    // A guest that ended by itself looks as one that was switched off: until the runtime knows of
    // the switch, this generation has not been acted on.
    const bool is_acted_on = there.spec.power == machine.object.spec.power && !IsBehind(there);
    if (!is_acted_on) --report.observed_generation;
    if (progress.phase == Progress::Phase::kAssigned) {
      report.state = MachineStateWord(there.status.state);
      ready = MachineReady(there, progress);
    }
  }
  if (progress.phase == Progress::Phase::kRemoving) {
    ready = HeldUp(progress, "Terminating", {});
  }
  report.volumes = Parts(status.volumes);
  report.nics = Parts(status.nics);
  constexpr PartWords kVolumes = {.condition = "VolumesReady", .not_ready = "VolumeNotReady"};
  constexpr PartWords kNics = {.condition = "NetworkInterfacesReady",
                               .not_ready = "NetworkInterfaceNotReady"};
  report.conditions = {
      PrerequisitesMet(desired),
      PartsReady(
          kVolumes, machine.volume_waits, status.volumes, machine.object.spec.volumes.size()),
      PartsReady(kNics, machine.nic_waits, status.nics, machine.object.spec.nics.size()),
      SecretsReady(desired, observed, progress)};
  if (auto image = ImageReady(status)) report.conditions.push_back(*std::move(image));
  report.conditions.push_back(std::move(ready));
  return report;
}

ObjectReport ReportVolume(const Desired& desired,
                          std::span<const iri::Volume> observed,
                          const Progress& progress) {
  ObjectReport report = Begin(desired);
  report.state = "Pending";
  ReportCondition ready = HeldUp(progress, "Pending", "not created yet");
  std::optional<ReportCondition> image;
  if (!observed.empty()) {
    const iri::Volume& there = observed.front();
    report.runtime_id = RuntimeId(progress, there.metadata.id);
    report.access = there.status.access;
    report.storage_bytes = there.status.storage_bytes;
    if (there.status.state == iri::VolumeState::kAvailable) {
      report.state = "Available";
      ready = Condition("Ready", true, "Available", progress.error);
      if (IsHeldUp(progress.step)) ready.message = progress.step.message;
    } else if (there.status.state == iri::VolumeState::kError) {
      report.state = "Error";
      const std::string_view why = AnnotationOf(there.metadata, iri::kProblemAnnotation);
      ready = HeldUp(progress,
                     why.empty() ? "Error" : "RuntimeError",
                     why.empty() ? "the runtime reports an error" : std::string(why));
    } else if (AnnotationOf(there.metadata, iri::kImageProblemAnnotation).empty()) {
      const std::string_view why = AnnotationOf(there.metadata, iri::kProblemAnnotation);
      if (!why.empty()) ready = HeldUp(progress, "Pending", std::string(why));
    }
    image = ImageReady(there);
  }
  if (progress.step.kind == Kind::kStuck) {
    report.state = "Error";
    ready = HeldUp(progress, {}, {});
  }
  report.conditions = {PrerequisitesMet(desired), std::move(ready)};
  if (image.has_value()) report.conditions.insert(report.conditions.begin() + 1, *image);
  return report;
}

ObjectReport ReportSnapshot(const Desired& desired,
                            std::span<const iri::VolumeSnapshot> observed,
                            const Progress& progress) {
  ObjectReport report = Begin(desired);
  report.state = "Pending";
  ReportCondition ready = HeldUp(progress, "Pending", "not taken yet");
  // Of one that there is nobody asks what it was made of.
  bool is_made = false;
  if (!observed.empty()) {
    const iri::VolumeSnapshot& there = observed.front();
    report.runtime_id = RuntimeId(progress, there.metadata.id);
    is_made = true;
    if (there.state == iri::SnapshotState::kReady) {
      report.state = "Ready";
      report.storage_bytes = there.size_bytes;
      ready = Condition("Ready", true, "Ready", progress.error);
    } else if (there.state == iri::SnapshotState::kFailed) {
      report.state = "Failed";
      const std::string_view why = AnnotationOf(there.metadata, iri::kProblemAnnotation);
      ready = HeldUp(
          progress, "Failed", why.empty() ? "the runtime could not take it" : std::string(why));
    } else {
      const std::string_view why = AnnotationOf(there.metadata, iri::kProblemAnnotation);
      ready = HeldUp(progress, "Pending", why.empty() ? "it is being taken" : std::string(why));
    }
  }
  if (progress.step.kind == Kind::kStuck) {
    report.state = "Failed";
    ready = HeldUp(progress, {}, {});
  }
  report.conditions.push_back(std::move(ready));
  if (!is_made) report.conditions.insert(report.conditions.begin(), PrerequisitesMet(desired));
  return report;
}

ObjectReport ReportBucket(const Desired& desired,
                          std::span<const iri::Bucket> observed,
                          const Progress& progress) {
  ObjectReport report = Begin(desired);
  report.state = "Pending";
  ReportCondition ready = HeldUp(progress, "Pending", "not created yet");
  if (!observed.empty()) {
    const iri::Bucket& there = observed.front();
    report.runtime_id = RuntimeId(progress, there.metadata.id);
    report.bucket_endpoint = there.access.endpoint;
    report.access.secret_data = there.access.secret_data;
    if (there.state == iri::BucketState::kAvailable) {
      report.state = "Available";
      ready = Condition("Ready", true, "Available", progress.error);
    } else if (there.state == iri::BucketState::kError) {
      report.state = "Error";
      ready = HeldUp(progress, "Error", "the runtime reports an error");
    }
  }
  if (progress.step.kind == Kind::kStuck) {
    report.state = "Error";
    ready = HeldUp(progress, {}, {});
  }
  report.conditions = {PrerequisitesMet(desired), std::move(ready)};
  return report;
}

ObjectReport ReportReservation(const Desired& desired) {
  ObjectReport report = Begin(desired);
  report.state = "Accepted";
  report.conditions = {Condition("Ready", true, "Accepted")};
  return report;
}

}  // namespace berth::poollet
