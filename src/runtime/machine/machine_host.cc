// SPDX-License-Identifier: Apache-2.0
// Start, stop, what libvirt tells, and what the host tells about itself.
#include "runtime/machine/machine_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "iri/annotations.h"
#include "iri/labels.h"
#include "iri/wire/json.h"
#include "rt/backoff.h"
#include "rt/deadline.h"

namespace berth::runtime {
namespace {

constexpr int kEpochLength = 8;
constexpr std::string_view kRuntimeName = "berth-machine";
// Whoever asks for the host's capacity is not kept waiting by a libvirt that hangs.
constexpr Duration kStatisticsLimit = Duration::Seconds(5);

}  // namespace

MachineHost::MachineHost(Deps deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      pace_(options_.start_pace),
      changes_(deps.loop.random().NameSuffix(kEpochLength)),
      work_(deps.loop) {}

rt::Task<Result<std::unique_ptr<MachineHost>>> MachineHost::Start(Deps deps, Options options) {
  auto host = std::unique_ptr<MachineHost>(new MachineHost(deps, std::move(options)));
  MachineHost* const raw = host.get();
  deps.hypervisor.Listen([raw](const DomainEvent& event) { raw->OnEvent(event); });
  const Status taken = co_await host->TakeInAll();
  const bool may_pass = taken.Is(Reason::kUnavailable) || taken.Is(Reason::kTimeout);
  if (!taken.ok() && !may_pass) {
    CO_TRY_STATUS(co_await host->Stop());
    co_return taken;
  }
  if (may_pass) {
    host->why_unknown_ = taken.message();
    LOG_WARNING("{}", host->Known().message());
    host->work_.Spawn("machines.take_in", host->TakeInLater());
  }
  host->work_.Spawn("machines.logs", host->KeepLogsShort());
  co_return host;
}

rt::Task<Status> MachineHost::TakeInAll() {
  look_now_.Reset();
  CO_TRY_STATUS(co_await Resync());
  CO_TRY_STATUS(co_await AdoptNics());
  CO_TRY_STATUS(co_await LearnVersion());
  is_taken_in_.Set();
  // The connection was lost meanwhile, and with it what happened.
  if (look_now_.is_set()) work_.Spawn("machines.resync", Resync());
  co_return co_await SettleBudget();
}

rt::Task<Status> MachineHost::LearnVersion() {
  if (!hypervisor_version_.empty()) co_return OkStatus();
  Result<std::string> version =
      co_await rt::WithDeadline(deps_.hypervisor.Version(), kStatisticsLimit);
  if (version.ok()) hypervisor_version_ = *std::move(version);
  co_return version.status().Is(Reason::kCancelled) ? version.status() : OkStatus();
}

rt::Task<Status> MachineHost::TakeInLater() {
  rt::Backoff backoff(options_.retry);
  for (;;) {
    const Duration pause = backoff.Next(deps_.loop.random());
    const Status waited = co_await rt::WithDeadline(look_now_.Wait(), pause);
    if (waited.Is(Reason::kCancelled)) co_return waited;
    const Status taken = co_await TakeInAll();
    if (taken.Is(Reason::kCancelled)) co_return taken;
    if (taken.ok()) break;
    if (why_unknown_ != taken.message()) LOG_WARNING("{}", taken.message());
    why_unknown_ = taken.message();
  }
  LOG_INFO("libvirt answers: this host has {} machines", machines_.size());
  // Whoever asked before was refused, and need not wait until he asks again.
  for (const auto& [id, entry] : machines_) Changed(*entry, "state");
  co_return OkStatus();
}

Status MachineHost::Known() const {
  if (is_taken_in_.is_set()) return OkStatus();
  const std::string trouble = deps_.hypervisor.Trouble();
  return Unavailable("which machines this host has is not known yet: " +
                     (trouble.empty() ? why_unknown_ : trouble));
}

rt::Task<Status> MachineHost::Stop() {
  deps_.hypervisor.Listen(nullptr);
  changes_.End();
  for (const auto& [id, entry] : machines_) {
    if (const auto console = entry->console.lock()) console->End("the machine runtime stops");
  }
  co_return co_await work_.Close();
}

rt::Task<Status> MachineHost::AdoptNics() {
  std::vector<PluggedNic> plugged;
  for (const auto& [id, entry] : machines_) {
    for (const iri::MachineNic& nic : entry->record.object.spec.nics) {
      plugged.push_back(PluggedOf(entry->record.object, nic));
    }
  }
  co_return co_await deps_.networks.Adopt(std::move(plugged));
}

void MachineHost::Observe(Entry& entry, Observed observed) {
  entry.observed = observed;
  entry.looks = ++looks_;
}

rt::Task<Status> MachineHost::Resync() {
  // What is heard of a guest while the list is on its way is newer than the list.
  const uint64_t before = looks_;
  CO_TRY(std::vector<Domain> domains, co_await deps_.hypervisor.List());
  std::set<std::string> there;
  for (Domain& domain : domains) {
    there.insert(domain.name);
    const Pointer known = OfDomain(domain.name);
    if (known == nullptr) {
      if (IsBeingCreated(domain.name)) continue;  // whoever creates it takes it in
      const Status taken = co_await TakeIn(std::move(domain));
      if (!taken.ok()) co_return taken;
      continue;
    }
    if (known->looks <= before) NoteLook(*known, domain);
    // What was asked for while libvirt was away may have been done, or not.
    Doubt(known, Duration());
    Tend(known);
  }
  for (const auto& [id, entry] : machines_) {
    if (there.contains(DomainNameOf(id)) || !entry->observed.alive() || entry->looks > before) {
      continue;
    }
    Observe(*entry, Observed());
    ForgetLife(*entry);
    Changed(*entry, "state");
    Tend(entry);
  }
  co_return co_await RemoveStrays(std::move(there));
}

void MachineHost::NoteLook(Entry& entry, const Domain& domain) {
  const Observed seen = {
      .state = domain.state, .off_reason = domain.off_reason, .pause = domain.pause_reason};
  const bool is_paused = seen.state == GuestState::kPaused;
  const bool same =
      entry.observed.state == seen.state && (!is_paused || entry.observed.pause == seen.pause);
  if (is_paused && !same) {
    NotePause(entry, seen.pause);
    return;
  }
  Observe(entry, seen);
  if (!seen.alive()) ForgetLife(entry);
  if (!same) Changed(entry, "state");
}

rt::Task<Status> MachineHost::RemoveStrays(std::set<std::string> domains) {
  CO_TRY(const std::vector<std::string> ids, co_await deps_.folders.ListUnused());
  for (const std::string& id : ids) {
    if (domains.contains(DomainNameOf(id)) || machines_.contains(id) || creating_.contains(id)) {
      continue;
    }
    LOG_INFO("removing the folders of {}, of which libvirt knows nothing", Printable(id));
    CO_TRY_STATUS(co_await deps_.folders.Remove(id));
  }
  co_return OkStatus();
}

rt::Task<Status> MachineHost::TakeIn(Domain domain) {
  if (domain.record.empty()) co_return OkStatus();  // somebody else's
  Result<MachineRecord> record = MachineRecordOf(domain.record);
  if (!record.ok()) {
    // It stays as it is, and is for a person to look at.
    LOG_ERROR("the record of domain {} cannot be read and is left alone: {}",
              Printable(domain.name),
              record.status().message());
    co_return OkStatus();
  }
  const std::string id = record->object.metadata.id;
  if (record->owner != deps_.folders.folder() || domain.name != DomainNameOf(id)) {
    co_return OkStatus();
  }
  auto entry = std::make_shared<Entry>(options_);
  entry->record = *std::move(record);
  Observe(*entry,
          {.state = domain.state, .off_reason = domain.off_reason, .pause = domain.pause_reason});
  if (entry->observed.lacks_room()) ScheduleResume(*entry);
  CO_TRY(const std::optional<std::string> secrets, co_await deps_.folders.Secrets(id));
  if (secrets.has_value()) {
    Result<iri::Machine> kept = iri::MachineFromJson(*secrets);
    if (kept.ok()) entry->secrets = std::move(kept->spec);
  }
  CO_TRY(entry->kernel_bytes, co_await deps_.folders.KernelBytes(id));
  if (entry->observed.alive()) {
    Result<DeviceElements> live = co_await deps_.hypervisor.LiveDevices(domain.name);
    if (live.ok()) entry->live = *std::move(live);
  }
  if (machines_.contains(id)) co_return OkStatus();
  machines_.emplace(id, entry);
  NoteIgnition(entry);
  // Whoever looked after it before may have been killed in the middle of an attach.
  Doubt(entry, Duration());
  Tend(entry);
  // At the start all are told at once. Whoever comes later was not among them.
  if (is_taken_in_.is_set()) CO_TRY_STATUS(co_await SettleBudget());
  co_return OkStatus();
}

void MachineHost::NoteIgnition(const Pointer& entry) {
  const MachineRecord& record = entry->record;
  if (LacksIgnition(record, entry->secrets) && record.object.spec.power == iri::Power::kOn) {
    Say(record.object.metadata,
        iri::EventType::kWarning,
        iri::kSecretsMissingReason,
        "Start",
        std::string(kIgnitionMissingWords));
    Changed(*entry, "secrets");
  }
  if (record.has_ignition || entry->secrets.ignition_data.empty()) return;
  // Records of earlier versions do not say it, and the next boot has nothing else to tell.
  const auto change = [](MachineRecord& noted) { noted.has_ignition = true; };
  work_.Spawn("machines.note_ignition", Save(entry, change));
}

MachineHost::Pointer MachineHost::OfDomain(std::string_view name) const {
  for (const auto& [id, entry] : machines_) {
    if (DomainNameOf(id) == name) return entry;
  }
  return nullptr;
}

bool MachineHost::IsBeingCreated(std::string_view domain) const {
  return std::ranges::any_of(
      creating_, [domain](const std::string& id) { return DomainNameOf(id) == domain; });
}

void MachineHost::OnEvent(const DomainEvent& event) {
  using Kind = DomainEvent::Kind;
  if (event.kind == Kind::kConnected) {
    look_now_.Set();
    if (is_taken_in_.is_set()) work_.Spawn("machines.resync", Resync());
    return;
  }
  const Pointer entry = OfDomain(event.name);
  if (event.kind == Kind::kDefined && entry == nullptr && !IsBeingCreated(event.name)) {
    // A create of a former life of this process, to which libvirt came only now.
    work_.Spawn("machines.resync", Resync());
  }
  if (entry == nullptr) return;
  switch (event.kind) {
    case Kind::kStarted:
      // A held guest is paused from its first moment, and said to be so before this.
      if (!entry->observed.alive()) Observe(*entry, {.state = GuestState::kRunning});
      break;
    case Kind::kResumed:
      Observe(*entry, {.state = GuestState::kRunning});
      entry->resume_at.reset();
      if (!entry->trial_ends.has_value()) break;
      Tend(entry);  // it is said to run when it has for a while
      return;
    case Kind::kPaused:
      NotePause(*entry, event.pause);
      Tend(entry);
      return;
    case Kind::kStopped:
      Observe(*entry, {.state = GuestState::kOff, .off_reason = event.reason});
      ForgetLife(*entry);
      entry->device_event.Set();
      break;
    case Kind::kDeviceAdded: Doubt(entry, Duration()); return;
    case Kind::kDeviceRemoved:
      entry->device_event.Set();
      Doubt(entry, options_.give_back_after);
      return;
    case Kind::kDefined:
    case Kind::kLost:
    case Kind::kConnected: return;
  }
  Changed(*entry, "state");
  Tend(entry);
}

rt::Task<Result<iri::RuntimeVersion>> MachineHost::Version() {
  iri::RuntimeVersion version;
  version.runtime_name = kRuntimeName;
  version.runtime_version = std::string(kVersion);
  co_return version;
}

rt::Task<Result<std::vector<iri::Event>>> MachineHost::ListEvents(iri::EventFilter filter) {
  CO_TRY_STATUS(Known());
  co_return events_.List(filter);
}

rt::Task<Result<std::vector<iri::MachineClassStatus>>> MachineHost::ClassStatus() {
  std::vector<iri::MachineClassStatus> classes;
  for (const OfferedMachineClass& offered : options_.classes) {
    const int64_t quantity = TimesIn(ToResourceVector(offered.machine_class), options_.total);
    classes.push_back({.machine_class = offered.machine_class, .quantity = quantity});
  }
  co_return classes;
}

rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> MachineHost::Watch(std::string cursor) {
  co_return changes_.Watch(cursor);
}

rt::Task<Result<iri::HostCapacity>> MachineHost::Capacity() {
  iri::HostCapacity capacity;
  capacity.total = options_.total;
  capacity.facts = options_.facts;
  capacity.facts["machine-acceleration"] = AccelerationName(options_.acceleration);
  if (!hypervisor_version_.empty()) capacity.facts["machine-hypervisor"] = hypervisor_version_;
  capacity.boot_id = options_.boot_id;
  const Status known = Known();
  if (!known.ok()) {
    capacity.trouble = known.message();
    co_return capacity;
  }
  CO_TRY_STATUS(co_await SettleBudget());
  for (const auto& [id, entry] : machines_) AddTo(capacity.used, entry->record.resources);
  const Result<std::vector<DomainStatistics>> all =
      co_await rt::WithDeadline(deps_.hypervisor.Statistics(), kStatisticsLimit);
  // What it promises is known without libvirt.
  if (!all.ok()) {
    capacity.trouble = all.status().Wrap("libvirt").message();
    co_return capacity;
  }
  CO_TRY_STATUS(co_await LearnVersion());
  if (!hypervisor_version_.empty()) capacity.facts["machine-hypervisor"] = hypervisor_version_;
  for (const DomainStatistics& one : *all) {
    const Pointer entry = OfDomain(one.name);
    if (entry == nullptr) continue;
    iri::InstanceStatistics statistics;
    statistics.kind = iri::ObjectKind::kMachine;
    statistics.id = entry->record.object.metadata.id;
    statistics.uid = LabelOf(entry->record.object.metadata, iri::kMachineUidLabel);
    statistics.cpu_time = one.cpu_time;
    statistics.memory_bytes = one.memory_bytes;
    statistics.disk_bytes = one.disk_bytes;
    statistics.disk_read_bytes = one.disk_read_bytes;
    statistics.disk_written_bytes = one.disk_written_bytes;
    statistics.network_received_bytes = one.network_received_bytes;
    statistics.network_sent_bytes = one.network_sent_bytes;
    capacity.load[std::string(iri::kMemory)] += one.memory_bytes;
    capacity.instances.push_back(std::move(statistics));
  }
  co_return capacity;
}

rt::Task<Result<std::vector<iri::LeaseState>>> MachineHost::RenewLease(iri::LeaseRenewal) {
  co_return Status(Reason::kMethodNotSupported,
                   "guests are processes: leases are kept by the poollet's fencer");
}

rt::Task<Status> MachineHost::SetReservations(std::vector<iri::Reservation> reservations) {
  CO_TRY_STATUS(Known());
  iri::ResourceVector used;
  for (const auto& [id, entry] : machines_) {
    const std::string_view uid = LabelOf(entry->record.object.metadata, iri::kMachineUidLabel);
    const bool has_own = std::ranges::any_of(reservations, [&](const iri::Reservation& one) {
      return !one.machine_uid.empty() && one.machine_uid == uid;
    });
    if (!has_own) AddTo(used, entry->record.resources);
  }
  for (const iri::Reservation& reservation : reservations) {
    const Status fits = CheckFits(reservation.resources, used, options_.total);
    if (!fits.ok()) {
      co_return Conflict("reservation " + Quote(reservation.id) + ": " +
                         std::string(fits.message()));
    }
    AddTo(used, reservation.resources);
  }
  reservations_ = std::move(reservations);
  co_return OkStatus();
}

rt::Task<Result<std::vector<iri::Reservation>>> MachineHost::ListReservations() {
  CO_TRY_STATUS(Known());
  co_return reservations_;
}

void MachineHost::Say(const iri::ObjectMetadata& metadata,
                      iri::EventType type,
                      std::string_view reason,
                      std::string_view action,
                      std::string message) {
  constexpr size_t kMessageMax = 1024;
  LOG_INFO("machine {}: {}: {}", metadata.id, reason, message);
  iri::Event event;
  event.involved = metadata;
  event.type = type;
  event.reason = reason;
  event.action = action;
  event.message = message.substr(0, kMessageMax);
  event.time = deps_.loop.WallNow();
  events_.Add(std::move(event));
}

void MachineHost::Changed(const Entry& entry, std::string_view what) {
  changes_.Add(
      iri::ObjectKind::kMachine, iri::ChangeType::kChanged, entry.record.object.metadata, what);
}

}  // namespace berth::runtime
