// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "iri/wire/json.h"
#include "meta/json.h"

namespace berth::runtime {

using iri::ObjectKind;
using meta::Value;
using Touched = FakeHostState::Touched;

namespace {

// One line: the largest machine that the interface carries, with room to spare.
constexpr size_t kLineBytesMax = 8 << 20;

// Then the file is rewritten without what is outdated.
constexpr size_t kAppendedBytesMax = 64 << 20;

void Put(std::string& line, std::string_view key, std::string_view json) {
  line += ',';
  meta::AppendJsonString(key, line);
  line += ':';
  line += json;
}
void PutText(std::string& line, std::string_view key, std::string_view text) {
  std::string json;
  meta::AppendJsonString(text, json);
  Put(line, key, json);
}
void PutTime(std::string& line, std::string_view key, std::optional<Time> time) {
  if (time.has_value()) Put(line, key, std::to_string(time->nanos()));
}

std::string Begin(std::string_view what) {
  std::string line = R"({"what":)";
  meta::AppendJsonString(what, line);
  return line;
}

template <class Entry>
std::string EntryLine(ObjectKind kind, const Entry& entry) {
  std::string line = Begin(iri::ObjectKindName(kind));
  Put(line, "object", ToJson(entry.object));
  PutTime(line, "readyAt", entry.ready_at);
  PutTime(line, "goneAt", entry.gone_at);
  return line;
}

std::string LineOf(const FakeMachine& machine) {
  std::string line = EntryLine(ObjectKind::kMachine, machine);
  const FakeGuest& guest = machine.guest;
  Put(line, "phase", std::to_string(static_cast<int>(guest.phase)));
  Put(line, "bootEnd", std::to_string(static_cast<int>(guest.boot_end)));
  PutTime(line, "until", guest.until);
  PutTime(line, "started", guest.started);
  PutTime(line, "crashAt", guest.crash_at);
  PutText(line, "why", guest.why);
  if (machine.lacks_ignition) Put(line, "lacksIgnition", "1");
  if (machine.waits) Put(line, "waits", "1");
  if (guest.pid != 0) {
    Put(line, "held", guest.held ? "1" : "0");
    Put(line, "pid", std::to_string(guest.pid));
    Put(line, "startTicks", std::to_string(guest.start_ticks));
  }
  return line + "}\n";
}

std::string RemovalLine(ObjectKind kind, const std::string& id) {
  std::string line = Begin("Removal");
  PutText(line, "kind", iri::ObjectKindName(kind));
  PutText(line, "id", id);
  return line + "}\n";
}

std::string LeasesLine(const FakeHostState& state) {
  std::string line = Begin("Leases");
  line += R"(,"leases":[)";
  bool first = true;
  for (const auto& [uid, lease] : state.leases()) {
    line += std::exchange(first, false) ? "{\"uid\":" : ",{\"uid\":";
    meta::AppendJsonString(uid, line);
    PutTime(line, "deadline", lease.deadline);
    Put(line, "fenced", lease.fenced ? "true" : "false");
    line += '}';
  }
  return line + "]}\n";
}

std::string ReservationsLine(const FakeHostState& state) {
  std::string line = Begin("Reservations");
  line += R"(,"reservations":[)";
  bool first = true;
  for (const iri::Reservation& reservation : state.reservations()) {
    if (!std::exchange(first, false)) line += ',';
    line += ToJson(reservation);
  }
  return line + "]}\n";
}

std::string HostLine(const FakeHostState& state, const std::string& host_boot) {
  std::string line = Begin("Host");
  PutText(line, "bootId", state.boot_id());
  PutText(line, "hostBoot", host_boot);
  return line + "}\n";
}

template <class Table>
std::string ObjectLine(const Table& table, ObjectKind kind, const std::string& id) {
  const auto found = table.find(id);
  if (found == table.end()) return RemovalLine(kind, id);
  return EntryLine(kind, found->second) + "}\n";
}

std::string ObjectLine(const FakeHostState& state, ObjectKind kind, const std::string& id) {
  switch (kind) {
    case ObjectKind::kMachine: {
      const auto found = state.machines().find(id);
      return found == state.machines().end() ? RemovalLine(kind, id) : LineOf(found->second);
    }
    case ObjectKind::kVolume: return ObjectLine(state.volumes(), kind, id);
    case ObjectKind::kVolumeSnapshot: return ObjectLine(state.snapshots(), kind, id);
    case ObjectKind::kBucket: return ObjectLine(state.buckets(), kind, id);
    case ObjectKind::kUnknown: break;
  }
  return {};
}

int64_t NumberAt(const Value& value, std::string_view key) {
  const Value* const found = value.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}
std::optional<Time> TimeAt(const Value& value, std::string_view key) {
  if (value.Find(key) == nullptr) return std::nullopt;
  return Time::FromNanos(NumberAt(value, key));
}
std::string ObjectJson(const Value& value) {
  const Value* const object = value.Find("object");
  return object == nullptr ? "" : meta::WriteJson(*object);
}

template <class Object>
Result<FakeEntry<Object>> EntryOf(const Value& value, Result<Object> object) {
  if (!object.ok()) return object.status();
  FakeEntry<Object> entry;
  entry.object = *std::move(object);
  entry.ready_at = TimeAt(value, "readyAt");
  entry.gone_at = TimeAt(value, "goneAt");
  return entry;
}

Result<FakeMachine> MachineOf(const Value& value) {
  TRY(FakeEntry<iri::Machine> entry, EntryOf(value, iri::MachineFromJson(ObjectJson(value))));
  FakeMachine machine;
  static_cast<FakeEntry<iri::Machine>&>(machine) = std::move(entry);
  FakeGuest& guest = machine.guest;
  const int64_t phase = NumberAt(value, "phase");
  if (phase < 0 || phase > static_cast<int64_t>(FakeGuest::Phase::kDead)) {
    return BadRequest("phase " + std::to_string(phase) + " is unknown");
  }
  guest.phase = static_cast<FakeGuest::Phase>(phase);
  guest.boot_end =
      NumberAt(value, "bootEnd") == 0 ? FakeGuest::BootEnd::kRuns : FakeGuest::BootEnd::kDies;
  guest.until = TimeAt(value, "until").value_or(Time());
  guest.started = TimeAt(value, "started").value_or(Time());
  guest.crash_at = TimeAt(value, "crashAt");
  guest.why = value.GetString({"why"});
  machine.lacks_ignition = NumberAt(value, "lacksIgnition") != 0;
  machine.waits = NumberAt(value, "waits") != 0;
  guest.held = NumberAt(value, "held") != 0;
  guest.pid = NumberAt(value, "pid");
  guest.start_ticks = static_cast<uint64_t>(NumberAt(value, "startTicks"));
  return machine;
}

// What the lines of a file add up to.
struct Loaded {
  std::map<std::string, FakeMachine> machines;
  std::map<std::string, FakeEntry<iri::Volume>> volumes;
  std::map<std::string, FakeEntry<iri::VolumeSnapshot>> snapshots;
  std::map<std::string, FakeEntry<iri::Bucket>> buckets;
  std::map<std::string, FakeLease, std::less<>> leases;
  std::vector<iri::Reservation> reservations;
  std::string boot_id;
  std::string host_boot;
};

void LoadLeases(const Value& value, Loaded& loaded) {
  loaded.leases.clear();
  const Value* const leases = value.Find("leases");
  if (leases == nullptr || !leases->is_array()) return;
  for (const Value& lease : leases->items()) {
    const Value* const fenced = lease.Find("fenced");
    loaded.leases[std::string(lease.GetString({"uid"}))] = {
        .deadline = TimeAt(lease, "deadline").value_or(Time()),
        .fenced = fenced != nullptr && fenced->is_bool() && fenced->as_bool()};
  }
}

Status LoadReservations(const Value& value, Loaded& loaded) {
  loaded.reservations.clear();
  const Value* const reservations = value.Find("reservations");
  if (reservations == nullptr || !reservations->is_array()) return OkStatus();
  for (const Value& item : reservations->items()) {
    TRY(iri::Reservation reservation, iri::ReservationFromJson(meta::WriteJson(item)));
    loaded.reservations.push_back(std::move(reservation));
  }
  return OkStatus();
}

Status LoadLine(const Value& value, Loaded& loaded) {
  const std::string_view what = value.GetString({"what"});
  if (what == "Host") {
    loaded.boot_id = value.GetString({"bootId"});
    loaded.host_boot = value.GetString({"hostBoot"});
  } else if (what == "Leases") {
    LoadLeases(value, loaded);
  } else if (what == "Reservations") {
    TRY_STATUS(LoadReservations(value, loaded));
  } else if (what == "Removal") {
    const std::string id(value.GetString({"id"}));  // ids of all kinds differ
    loaded.machines.erase(id);
    loaded.volumes.erase(id);
    loaded.snapshots.erase(id);
    loaded.buckets.erase(id);
  } else if (what == iri::ObjectKindName(ObjectKind::kMachine)) {
    TRY(FakeMachine machine, MachineOf(value));
    loaded.machines[machine.object.metadata.id] = std::move(machine);
  } else if (what == iri::ObjectKindName(ObjectKind::kVolume)) {
    TRY(auto entry, EntryOf(value, iri::VolumeFromJson(ObjectJson(value))));
    loaded.volumes[entry.object.metadata.id] = std::move(entry);
  } else if (what == iri::ObjectKindName(ObjectKind::kVolumeSnapshot)) {
    TRY(auto entry, EntryOf(value, iri::VolumeSnapshotFromJson(ObjectJson(value))));
    loaded.snapshots[entry.object.metadata.id] = std::move(entry);
  } else if (what == iri::ObjectKindName(ObjectKind::kBucket)) {
    TRY(auto entry, EntryOf(value, iri::BucketFromJson(ObjectJson(value))));
    loaded.buckets[entry.object.metadata.id] = std::move(entry);
  } else {
    return BadRequest("unknown line " + Quote(what));
  }
  return OkStatus();
}

Result<Loaded> LoadFile(const std::string& path) {
  Loaded loaded;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // no newline at its end: the process died while it wrote
    const Result<Value> value = meta::ParseJson(line, kLineBytesMax);
    const Status status = value.ok() ? LoadLine(*value, loaded) : value.status();
    if (!status.ok()) {
      return BadRequest("state file " + path + " line " + std::to_string(number) + ": " +
                        std::string(status.message()) + "; remove the file to begin anew");
    }
  }
  return loaded;
}

Status WriteAll(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unavailable("write " + path + ": " + std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace

FakeStateFile::FakeStateFile(std::string path,
                             std::shared_ptr<FakeHostState> state,
                             std::string host_boot)
    : path_(std::move(path)), state_(std::move(state)), host_boot_(std::move(host_boot)) {}

FakeStateFile::~FakeStateFile() {
  state_->on_touch = nullptr;
  if (file_ >= 0) ::close(file_);
}

Result<std::unique_ptr<FakeStateFile>> FakeStateFile::Open(std::string path,
                                                           std::shared_ptr<FakeHostState> state,
                                                           std::string host_boot) {
  std::unique_ptr<FakeStateFile> opened(
      new FakeStateFile(std::move(path), std::move(state), std::move(host_boot)));
  TRY_STATUS(opened->Load());
  TRY_STATUS(opened->Rewrite());
  FakeStateFile* const self = opened.get();
  self->state_->on_touch = [self](const Touched& touched) { self->Append(touched); };
  return opened;
}

Status FakeStateFile::Load() {
  TRY(Loaded loaded, LoadFile(path_));
  const bool rebooted = loaded.host_boot != host_boot_;
  if (!rebooted) state_->RestoreBootId(loaded.boot_id);
  for (auto& [id, machine] : loaded.machines) {
    if (rebooted && machine.guest.alive()) {
      machine.guest = FakeGuest();
      machine.guest.phase = FakeGuest::Phase::kDead;
      machine.guest.why = "HostLostPower";
    }
    if (rebooted && state_->options().flavor == FakeFlavor::kBerth) machine.ForgetIgnition();
    // The clock of times began anew with the host.
    if (rebooted && machine.gone_at.has_value()) machine.gone_at = Time();
    state_->Restore(std::move(machine));
  }
  const auto restore = [&](auto& entries) {
    for (auto& [id, entry] : entries) {
      if (rebooted && entry.ready_at.has_value()) entry.ready_at = Time();
      if (rebooted && entry.gone_at.has_value()) entry.gone_at = Time();
      state_->Restore(std::move(entry));
    }
  };
  restore(loaded.volumes);
  restore(loaded.snapshots);
  restore(loaded.buckets);
  if (rebooted) {
    for (auto& [uid, lease] : loaded.leases) lease = {.deadline = Time(), .fenced = true};
  }
  state_->RestoreLeases(std::move(loaded.leases));
  state_->RestoreReservations(std::move(loaded.reservations));
  return OkStatus();
}

Status FakeStateFile::Rewrite() {
  const std::string temporary = path_ + ".new";
  if (file_ >= 0) ::close(file_);
  file_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0) return BadRequest("state file " + temporary + ": " + std::strerror(errno));
  std::string text = HostLine(*state_, host_boot_);
  for (const auto& [id, machine] : state_->machines()) text += LineOf(machine);
  for (const auto& [id, entry] : state_->volumes()) {
    text += EntryLine(ObjectKind::kVolume, entry) + "}\n";
  }
  for (const auto& [id, entry] : state_->snapshots()) {
    text += EntryLine(ObjectKind::kVolumeSnapshot, entry) + "}\n";
  }
  for (const auto& [id, entry] : state_->buckets()) {
    text += EntryLine(ObjectKind::kBucket, entry) + "}\n";
  }
  text += LeasesLine(*state_) + ReservationsLine(*state_);
  TRY_STATUS(WriteAll(file_, text, temporary));
  appended_ = 0;
  if (::rename(temporary.c_str(), path_.c_str()) != 0) {
    return BadRequest("state file " + path_ + ": " + std::strerror(errno));
  }
  return OkStatus();
}

void FakeStateFile::Append(const Touched& touched) {
  std::string line;
  switch (touched.what) {
    case Touched::What::kObject: line = ObjectLine(*state_, touched.kind, touched.id); break;
    case Touched::What::kLeases: line = LeasesLine(*state_) + HostLine(*state_, host_boot_); break;
    case Touched::What::kReservations: line = ReservationsLine(*state_); break;
  }
  Status written = WriteAll(file_, line, path_);
  appended_ += line.size();
  if (written.ok() && appended_ > kAppendedBytesMax) written = Rewrite();
  if (!written.ok()) LOG_ERROR("the state of the fake runtime is not kept: {}", written.ToString());
}

}  // namespace berth::runtime
