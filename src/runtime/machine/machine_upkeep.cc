// SPDX-License-Identifier: Apache-2.0
// What is done for a guest that is alive: it has the devices of its record, no less and no more,
// and goes on when its disk has room again.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {

MachineStep MachineHost::Next(const Entry& entry) const {
  const Time now = deps_.loop.Now();
  const auto is_due = [now](const std::optional<Time>& at) { return at.has_value() && *at <= now; };
  const Due due = {.match = is_due(entry.match_at), .resume = is_due(entry.resume_at)};
  const MachineStep step = NextStep(entry.record, entry.observed, due);
  const bool waits = step == MachineStep::kStart && LacksIgnition(entry.record, entry.secrets);
  return waits ? MachineStep::kNone : step;
}

std::optional<Duration> MachineHost::UntilDue(const Entry& entry) const {
  if (!entry.observed.alive()) return std::nullopt;
  std::optional<Time> first = entry.match_at;
  const auto consider = [&first](const std::optional<Time>& at) {
    if (at.has_value() && (!first.has_value() || *at < *first)) first = at;
  };
  if (entry.observed.lacks_room()) consider(entry.resume_at);
  consider(entry.trial_ends);
  if (!first.has_value()) return std::nullopt;
  return std::max(*first - deps_.loop.Now(), Duration());
}

void MachineHost::ForgetLife(Entry& entry) {
  entry.live.reset();
  entry.kept.clear();
  entry.match_at.reset();
  entry.resume_at.reset();
  entry.trial_ends.reset();
}

void MachineHost::Doubt(const Pointer& entry, Duration after) {
  if (!entry->observed.alive()) return;
  const Time at = deps_.loop.Now() + after;
  if (!entry->match_at.has_value() || at < *entry->match_at) entry->match_at = at;
  Tend(entry);
}

rt::Task<Status> MachineHost::MatchDevices(Pointer entry) {
  CO_TRY(const rt::Gate::Permit permit, co_await entry->saving.Enter());
  if (Next(*entry) != MachineStep::kMatch) co_return OkStatus();
  // First: what is heard from here on is to be looked at again.
  entry->match_at.reset();
  const Status matched = co_await MatchInside(entry);
  if (!matched.ok() && entry->observed.alive()) entry->match_at = deps_.loop.Now();
  co_return matched;
}

// Idempotent: what is there is not given again, and what is not is not taken.
rt::Task<Status> MachineHost::MatchInside(Pointer entry) {
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  CO_TRY(const DomainPlan plan, Plan(*entry, entry->record));
  const Result<DeviceElements> live = co_await deps_.hypervisor.LiveDevices(name);
  if (live.status().Is(Reason::kConflict)) co_return OkStatus();  // it has ended
  if (!live.ok()) co_return live.status();
  const auto same_keys = [](const auto& one, const auto& other) {
    return one.first == other.first;
  };
  const bool is_known =
      entry->live.has_value() && std::ranges::equal(*entry->live, *live, same_keys);
  entry->live = *live;
  DeviceDrift drift = DriftOf(plan, *live);
  if (!is_known || !entry->error.empty()) Changed(*entry, "devices");
  if (drift.is_none()) co_return OkStatus();
  // First: a disk may have the place of one that is missing.
  for (const auto& [device, element] : drift.extra) {
    CO_TRY_STATUS(co_await Unplug(entry, device, element));
    Say(entry->record.object.metadata,
        iri::EventType::kNormal,
        "Detached",
        "Detach",
        device + ": the guest had it and should not");
    Changed(*entry, "devices");  // now: what follows may wait for the guest
  }
  CO_TRY_STATUS(co_await GiveMissing(entry, std::move(drift)));
  Changed(*entry, "devices");
  co_return OkStatus();
}

rt::Task<Status> MachineHost::GiveMissing(Pointer entry, DeviceDrift drift) {
  const iri::ObjectMetadata metadata = entry->record.object.metadata;
  const iri::MachineSpec spec = WithSecrets(entry->record.object.spec, entry->secrets);
  for (const iri::MachineVolume& volume : spec.volumes) {
    CO_TRY(const DomainDisk disk, DiskOf(metadata.id, volume, deps_.folders));
    if (std::ranges::find(drift.disks, disk) == drift.disks.end()) continue;
    CO_TRY(const bool there, co_await HasDisk(metadata.id, volume));
    if (!there) {
      MakeLater(entry);  // and then it is looked for again
      continue;
    }
    CO_TRY_STATUS(co_await SetKey(metadata.id, volume));
    const Status given = co_await PlugIn(entry, disk.target, DiskXml(disk));
    if (!given.ok()) co_return given.Wrap("volume " + Quote(volume.name));
    Say(metadata, iri::EventType::kNormal, "Attached", "Attach", "volume " + Quote(volume.name));
    Changed(*entry, "devices");
  }
  for (const iri::MachineNic& nic : spec.nics) {
    CO_TRY(const DomainNic described, deps_.networks.Describe(metadata.id, nic));
    if (std::ranges::find(drift.nics, described) == drift.nics.end()) continue;
    PluggedNic plugged = PluggedOf(entry->record.object, nic);
    CO_TRY_STATUS(co_await deps_.networks.Plug(std::move(plugged)));
    const Status given = co_await PlugIn(entry, described.mac, NicXml(described));
    const std::string which = "network interface " + Quote(nic.name);
    if (!given.ok()) co_return given.Wrap(which);
    Say(metadata, iri::EventType::kNormal, "Attached", "Attach", which);
    Changed(*entry, "devices");
  }
  co_return OkStatus();
}

Observed MachineHost::SeenOf(const Entry& entry) {
  if (!entry.trial_ends.has_value() || entry.observed.state != GuestState::kRunning) {
    return entry.observed;
  }
  return {.state = GuestState::kPaused, .pause = PauseReason::kDiskFull};
}

void MachineHost::ScheduleResume(Entry& entry) {
  if (entry.resume_at.has_value()) return;
  entry.resume_at = deps_.loop.Now() + entry.resumes.Next(deps_.loop.random());
}

void MachineHost::NotePause(Entry& entry, PauseReason why) {
  const bool is_known = entry.trial_ends.has_value() && why == PauseReason::kDiskFull;
  entry.trial_ends.reset();
  Observe(entry, {.state = GuestState::kPaused, .pause = why});
  // One that ran for so long found room.
  if (deps_.loop.Now() - entry.resumed >= options_.resume.max) entry.resumes.Reset();
  if (why == PauseReason::kDiskFull) ScheduleResume(entry);
  if (is_known) return;  // an attempt that nobody was told of
  entry.paused_since = deps_.loop.WallNow();
  Say(entry.record.object.metadata, iri::EventType::kWarning, "Paused", "Run", PausedWords(why));
  Changed(entry, "state");
}

rt::Task<Status> MachineHost::ResumeStopped(Pointer entry) {
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  entry->resume_at.reset();
  entry->resumed = deps_.loop.Now();
  entry->trial_ends = entry->resumed + options_.resume_trial;
  const Status resumed = co_await deps_.hypervisor.Resume(name);
  // What becomes of it is told by events.
  if (resumed.ok() || resumed.Is(Reason::kConflict)) co_return OkStatus();
  entry->trial_ends.reset();
  if (entry->observed.lacks_room()) entry->resume_at = deps_.loop.Now();
  co_return resumed;
}

void MachineHost::EndTrial(Entry& entry) {
  if (!entry.trial_ends.has_value() || deps_.loop.Now() < *entry.trial_ends) return;
  entry.trial_ends.reset();
  if (entry.observed.lacks_room()) {
    // Nothing was heard of it: perhaps it runs for long.
    ScheduleResume(entry);
    work_.Spawn("machines.resync", Resync());
    return;
  }
  if (entry.observed.state != GuestState::kRunning) return;
  Say(entry.record.object.metadata,
      iri::EventType::kNormal,
      "Resumed",
      "Run",
      "the guest goes on: its disk has room");
  Changed(entry, "state");
}

}  // namespace berth::runtime
