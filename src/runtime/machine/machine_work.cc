// SPDX-License-Identifier: Apache-2.0
// What happens to guests behind the calls: one task per machine.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "iri/annotations.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "pki/digest.h"
#include "rt/deadline.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {

using iri::EventType;

namespace {

std::string_view ActionOf(MachineStep step) {
  switch (step) {
    case MachineStep::kStart: return "Start";
    case MachineStep::kStop: return "Stop";
    case MachineStep::kRemove: return "Remove";
    case MachineStep::kMatch: return "Attach";
    case MachineStep::kResume: return "Resume";
    case MachineStep::kNote:
    case MachineStep::kNone: break;
  }
  return "Watch";
}

}  // namespace

void MachineHost::Tend(const Pointer& entry) {
  entry->nudge.Set();
  entry->late.nudge.Set();
  if (entry->is_tended || entry->is_gone) return;
  entry->is_tended = true;
  work_.Spawn("machine.tend", TendMachine(entry));
}

rt::Task<Status> MachineHost::TendMachine(Pointer entry) {
  rt::Context& context = co_await rt::CurrentContext();
  for (;;) {
    entry->nudge.Reset();  // whatever it was about is looked at now
    EndTrial(*entry);
    const MachineStep step = Next(*entry);
    if (entry->is_gone) break;
    if (step == MachineStep::kNone) {
      const std::optional<Duration> pause = UntilDue(*entry);
      if (!pause.has_value()) break;
      const Status waited = co_await rt::WithDeadline(entry->nudge.Wait(), *pause);
      if (waited.Is(Reason::kCancelled)) co_return waited;
      continue;
    }
    if (step == MachineStep::kStart) {
      if (const std::optional<Duration> early = pace_.Take(deps_.loop.Now())) {
        const Status waited = co_await WaitForTurn(entry, *early);
        if (waited.Is(Reason::kCancelled)) co_return waited;
        continue;
      }
    }
    const Status done = co_await Perform(entry, step);
    if (context.cancelled()) co_return Cancelled();
    if (done.ok()) {
      entry->error.clear();
      entry->image_problem.clear();
      entry->backoff.Reset();
      continue;
    }
    if (done.Is(Reason::kCancelled)) continue;  // the making of its disks: they are not wanted
    if (entry->error != done.message()) {
      entry->error = done.message();
      entry->image_problem = ImageProblem(done);
      const iri::ObjectMetadata& metadata = entry->record.object.metadata;
      Say(metadata, EventType::kWarning, "Failed", ActionOf(step), entry->error);
      Changed(*entry, "state");
    }
    const Duration pause = entry->backoff.Next(deps_.loop.random());
    const Status waited = co_await rt::WithDeadline(entry->nudge.Wait(), pause);
    if (waited.Is(Reason::kCancelled)) co_return waited;
  }
  entry->is_tended = false;
  co_return OkStatus();
}

// Or until something else is to be done with it.
rt::Task<Status> MachineHost::WaitForTurn(Pointer entry, Duration early) {
  const WallTime since = deps_.loop.WallNow();
  const Status waited = co_await rt::WithDeadline(entry->nudge.Wait(), early);
  if (options_.paced) options_.paced(entry->record.object.metadata.id, since);
  co_return waited;
}

rt::Task<Status> MachineHost::Perform(Pointer entry, MachineStep step) {
  switch (step) {
    case MachineStep::kNote: return NoteEnd(std::move(entry));
    case MachineStep::kStart: return StartGuest(std::move(entry));
    case MachineStep::kStop: return StopGuest(std::move(entry));
    case MachineStep::kMatch: return MatchDevices(std::move(entry));
    case MachineStep::kResume: return ResumeStopped(std::move(entry));
    default: return RemoveMachine(std::move(entry));
  }
}

rt::Task<Status> MachineHost::NoteEnd(Pointer entry) {
  GuestEnd end = EndOf(entry->record, entry->observed, options_.boot_id);
  end.time = deps_.loop.WallNow();
  const auto change = [&end](MachineRecord& record) { record.end = end; };
  CO_TRY_STATUS(co_await Save(entry, change));
  const bool failed = end.kind == GuestEnd::Kind::kFailed;
  Say(entry->record.object.metadata,
      failed ? EventType::kWarning : EventType::kNormal,
      end.reason,
      "Run",
      end.message);
  Changed(*entry, "state");
  co_return OkStatus();
}

ImageRequest MachineHost::ImageRequestOf(const Entry& entry) {
  const iri::ObjectMetadata& metadata = entry.record.object.metadata;
  ImageRequest request;
  request.namespace_ = LabelOf(metadata, iri::kMachineNamespaceLabel);
  request.uid = LabelOf(metadata, iri::kMachineUidLabel);
  return request;
}

ImageRequest MachineHost::ToldImageRequestOf(Pointer entry) {
  ImageRequest request = ImageRequestOf(*entry);
  // That of a disk that comes later is not what its guest waits for.
  if (entry->observed.alive()) return request;
  entry->pull = PullProgress(deps_.loop.Now(), options_.pull_interval);
  request.progress = [this, entry](int64_t bytes, int64_t of) {
    if (entry->pull.Note(bytes, of, deps_.loop.Now())) Changed(*entry, "image");
  };
  request.unpacking = [this, entry](int64_t bytes, int64_t of) {
    if (entry->pull.NoteUnpacked(bytes, of, deps_.loop.Now())) Changed(*entry, "image");
  };
  return request;
}

rt::Task<Status> MachineHost::SetPullSecret(iri::PullSecret secret) {
  CO_TRY_STATUS(Known());
  if (!deps_.images.SetPullSecret(secret.uid, std::move(secret.docker_config))) {
    co_return OkStatus();
  }
  const Pointer waiting = OfUid(secret.uid);
  if (waiting != nullptr) Tend(waiting);
  co_return OkStatus();
}

rt::Task<Status> MachineHost::SetIgnition(iri::Ignition ignition) {
  CO_TRY_STATUS(Known());
  const Status nobodys = NotFound("no machine of uid " + Quote(ignition.machine_uid));
  const Pointer entry = OfUid(ignition.machine_uid);
  if (entry == nullptr) co_return nobodys;
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (entry->is_gone) co_return nobodys;  // and nothing of it is left, as it should be
  const bool has = !ignition.data.empty();
  const bool same = entry->secrets.ignition_data == ignition.data;
  if (same && entry->record.has_ignition == has) co_return OkStatus();
  // The files first: whoever is killed behind this has them, and says no more that they are
  // missing.
  std::string before = std::exchange(entry->secrets.ignition_data, std::move(ignition.data));
  const Status put = co_await PutSecrets(entry);
  if (!put.ok()) {
    entry->secrets.ignition_data = std::move(before);
    co_return put;
  }
  if (entry->record.has_ignition != has) {
    MachineRecord next = entry->record;
    next.has_ignition = has;
    CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  }
  Changed(*entry, "secrets");
  Tend(entry);  // it may have waited for this
  co_return OkStatus();
}

rt::Task<Status> MachineHost::PutEfiVariables(std::string id, MachineRecord* record) {
  const std::string text(iri::AnnotationOf(record->object.metadata, iri::kEfiVariablesAnnotation));
  CO_TRY_STATUS(CheckEfi(record->object.spec.class_name, text));
  const std::string hash = text.empty() ? std::string() : pki::Sha256Hex(text);
  if (hash == record->efi_written) co_return OkStatus();
  if (!text.empty()) {
    CO_TRY(std::vector<iri::EfiVariable> variables, iri::EfiVariablesOf(text));
    CO_TRY_STATUS(co_await deps_.folders.PutEfiVariables(
        std::move(id), options_.efi_variables, std::move(variables)));
  }
  record->efi_written = hash;
  co_return OkStatus();
}

rt::Task<Status> MachineHost::PutStartFiles(Pointer entry) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (Next(*entry) != MachineStep::kStart) co_return Cancelled();
  co_return co_await PutSecrets(std::move(entry));
}

rt::Task<Status> MachineHost::StartGuest(Pointer entry) {
  CO_TRY_STATUS(co_await PutStartFiles(entry));  // with the folder that its disks are made in
  CO_TRY_STATUS(co_await MakeDisks(entry));
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (Next(*entry) != MachineStep::kStart) co_return OkStatus();
  const std::string id = entry->record.object.metadata.id;
  const iri::MachineSpec spec = WithSecrets(entry->record.object.spec, entry->secrets);
  CO_TRY_STATUS(co_await PutSecrets(entry));
  for (const iri::MachineVolume& volume : spec.volumes) {
    CO_TRY(const bool there, co_await HasDisk(id, volume));
    if (!there) co_return OkStatus();  // it came meanwhile, and is made first
    CO_TRY_STATUS(co_await SetKey(id, volume));
  }
  // It has its images now.
  const std::string uid = ImageRequestOf(*entry).uid;
  deps_.images.SetPullSecret(uid, std::string());
  CO_TRY(const int64_t media_bytes, co_await FindBootFiles(entry));
  for (const iri::MachineNic& nic : spec.nics) {
    PluggedNic plugged = PluggedOf(entry->record.object, nic);
    CO_TRY_STATUS(co_await deps_.networks.Plug(std::move(plugged)));
  }
  CO_TRY_STATUS(co_await CheckFirmware(spec.class_name));
  MachineRecord next = entry->record;
  next.started_in = options_.boot_id;
  SetMediaBytes(next, media_bytes);
  CO_TRY_STATUS(co_await PutEfiVariables(id, &next));
  CO_TRY_STATUS(co_await SaveInside(entry, std::move(next)));
  const StartMode mode = MovesOnPoolLoss(entry->record.object) ? StartMode::kHeld : StartMode::kRun;
  const Status started = co_await deps_.hypervisor.Start(DomainNameOf(id), mode);
  if (!started.ok()) {
    // Of an unknown outcome the next look at libvirt tells; else it is as if nothing was tried.
    if (started.Is(Reason::kTimeout) || started.Is(Reason::kUnavailable)) co_return started;
    MachineRecord back = entry->record;
    back.started_in.clear();
    CO_TRY_STATUS(co_await SaveInside(entry, std::move(back)));
    co_return started;
  }
  Observe(*entry, {.state = mode == StartMode::kHeld ? GuestState::kPaused : GuestState::kRunning});
  entry->has_image = false;
  const Result<DeviceElements> live = co_await deps_.hypervisor.LiveDevices(DomainNameOf(id));
  if (live.ok()) entry->live = *live;
  const bool held = mode == StartMode::kHeld;
  Say(entry->record.object.metadata,
      EventType::kNormal,
      held ? "Held" : "Started",
      "Start",
      held ? "the guest waits for its lease" : "the guest runs");
  Changed(*entry, "state");
  co_return OkStatus();
}

rt::Task<Status> MachineHost::StopGuest(Pointer entry) {
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  const bool hears = entry->observed.state == GuestState::kRunning;
  if (hears) {
    const Status pressed = co_await deps_.hypervisor.PressPower(name);
    if (pressed.Is(Reason::kUnavailable) || pressed.Is(Reason::kTimeout)) co_return pressed;
    const Time limit = deps_.loop.Now() + options_.shutdown_grace;
    for (;;) {
      entry->nudge.Reset();
      // It went, or somebody wants something else by now.
      if (NextStep(entry->record, entry->observed) != MachineStep::kStop) co_return OkStatus();
      const Duration left = limit - deps_.loop.Now();
      if (left <= Duration()) break;
      const Status waited = co_await rt::WithDeadline(entry->nudge.Wait(), left);
      if (waited.Is(Reason::kCancelled)) co_return waited;
    }
  }
  CO_TRY_STATUS(co_await deps_.hypervisor.Destroy(name));
  Observe(*entry, {.state = GuestState::kOff, .off_reason = OffReason::kDestroyed});
  ForgetLife(*entry);
  Changed(*entry, "state");
  co_return OkStatus();
}

// The domain goes last: it is what remembers that something is left to do.
rt::Task<Status> MachineHost::RemoveMachine(Pointer entry) {
  // Whoever makes a disk of it was told, and writes into its folder until then.
  CO_TRY(const rt::Gate::Permit alone, co_await entry->making.Enter());
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  const iri::ObjectMetadata metadata = entry->record.object.metadata;
  const iri::MachineSpec spec = entry->record.object.spec;
  const std::string name = DomainNameOf(metadata.id);
  const Status destroyed = co_await deps_.hypervisor.Destroy(name);
  if (!destroyed.ok() && !destroyed.Is(Reason::kNotFound)) co_return destroyed;
  Observe(*entry, {.state = GuestState::kOff, .off_reason = OffReason::kDestroyed});
  for (const iri::MachineNic& nic : spec.nics) {
    CO_TRY_STATUS(co_await deps_.networks.Unplug(metadata.id, nic));
  }
  for (const iri::MachineVolume& volume : spec.volumes) {
    CO_TRY_STATUS(co_await deps_.hypervisor.RemoveSecret(SecretUuid(metadata.id, volume.name)));
  }
  // With its EFI variables, which are in the folder.
  CO_TRY_STATUS(co_await deps_.folders.Remove(metadata.id));
  CO_TRY_STATUS(co_await deps_.folders.RemoveLibvirtLog(name));
  CO_TRY_STATUS(co_await deps_.hypervisor.Undefine(name));
  entry->is_gone = true;
  machines_.erase(metadata.id);
  deps_.images.SetPullSecret(std::string(LabelOf(metadata, iri::kMachineUidLabel)), std::string());
  Say(metadata, EventType::kNormal, "Removed", "Remove", "nothing of it is left");
  changes_.Add(iri::ObjectKind::kMachine, iri::ChangeType::kDeleted, metadata, "deleted");
  co_return co_await SettleBudget();
}

}  // namespace berth::runtime
