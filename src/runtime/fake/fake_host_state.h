// SPDX-License-Identifier: Apache-2.0
// FakeHostState is the hardware of a fake host and everything on it: objects, guests, leases. It
// outlives the runtime process (FakeHost), as guests outlive a real one. It has no timers: every
// call brings the time, and what was due until then happens first, in order.
//
// What really runs here is asked with RunningCopies; what the runtime says may be a lie.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "iri/runtimes.h"
#include "runtime/fake/fake_options.h"

namespace berth::runtime {

// Changes and events that are remembered; older ones are forgotten.
constexpr size_t kFakeChangesMax = 4096;
constexpr size_t kFakeEventsMax = 1024;

struct FakeClock {
  Time now;
  WallTime wall;
};

// The process of a machine.
struct FakeGuest {
  enum class Phase : uint8_t { kOff, kBooting, kRunning, kStopping, kDead };
  enum class BootEnd : uint8_t { kRuns, kDies };
  Phase phase = Phase::kOff;
  Time until;  // of kBooting and kStopping
  BootEnd boot_end = BootEnd::kRuns;
  std::optional<Time> crash_at;
  Time started;     // of kBooting and kRunning
  std::string why;  // of kDead: "Crashed"
  // With FakeGuests::kProcesses.
  bool held = false;  // its process waits, and its boot with it
  int64_t pid = 0;    // 0: it has none yet
  uint64_t start_ticks = 0;

  bool alive() const { return phase != Phase::kOff && phase != Phase::kDead; }
};

// An object and what the host knows of it beside.
template <class Object>
struct FakeEntry {
  Object object;
  std::optional<Time> ready_at;  // volumes, snapshots, buckets: until then kPending
  std::optional<Time> gone_at;   // being deleted
};
struct FakeMachine : FakeEntry<iri::Machine> {
  FakeGuest guest;
  bool lacks_ignition = false;  // it was in memory when the host lost its power
  bool waits = false;           // it was switched on meanwhile
  // As a reboot of the host does.
  void ForgetIgnition() {
    if (object.spec.ignition_data.empty()) return;
    object.spec.ignition_data.clear();
    lacks_ignition = true;
  }
};

struct FakeLease {
  Time deadline;
  bool fenced = false;
};

class FakeHostState {
 public:
  template <class Entry>
  using Table = std::map<std::string, Entry, std::less<>>;  // by id

  // `seed` makes ids and boot ids; two hosts of one world need different ones.
  FakeHostState(FakeHostOptions options, uint64_t seed);

  // May be changed at any time.
  FakeHostOptions& options() { return options_; }
  const FakeHostOptions& options() const { return options_; }

  // The truth, for checkers. A guest counts from the start of its boot until it is really gone.
  std::map<std::string, int> RunningCopies(const FakeClock& clock);  // by machine uid, none is 0
  int RunningCopies(const FakeClock& clock, std::string_view machine_uid);
  // What all objects were promised, whatever the lies.
  iri::ResourceVector Used() const;

  // What happens to hardware and guests from outside.
  void CrashGuest(const FakeClock& clock, std::string_view machine_id, std::string why = "Crashed");
  void ShutDownGuestFromInside(const FakeClock& clock, std::string_view machine_id);
  // Every guest is dead, objects stay without the secrets of machines, the boot id is another.
  void PowerCut(const FakeClock& clock);
  // Objects and guests are gone, as after a runtime that keeps everything in memory.
  void Forget(const FakeClock& clock);

  // Everything due until `clock` has happened. Called first by all others.
  void Advance(const FakeClock& clock);
  // When something will happen by itself.
  std::optional<Time> NextDue() const;

  // Machines. Errors are those of iri/machine.h; TooManyRequests: no room.
  Result<iri::Machine> CreateMachine(const FakeClock& clock, iri::Machine machine);
  Status DeleteMachine(const FakeClock& clock, std::string_view id);
  Status SetAnnotations(const FakeClock& clock, std::string_view id, iri::StringMap annotations);
  Status SetPower(const FakeClock& clock, std::string_view id, iri::Power power);
  Status AttachVolume(const FakeClock& clock, std::string_view id, iri::MachineVolume volume);
  Status DetachVolume(const FakeClock& clock, std::string_view id, std::string_view name);
  Status ResizeVolume(const FakeClock& clock, std::string_view id, const iri::MachineVolume& to);
  Status AttachNic(const FakeClock& clock, std::string_view id, iri::MachineNic nic);
  Status DetachNic(const FakeClock& clock, std::string_view id, std::string_view name);
  Result<std::string> Exec(const FakeClock& clock, std::string_view id);

  // Volumes, snapshots, buckets.
  Result<iri::Volume> CreateVolume(const FakeClock& clock, iri::Volume volume);
  Status ExpandVolume(const FakeClock& clock, std::string_view id, int64_t storage_bytes);
  Status DeleteVolume(const FakeClock& clock, std::string_view id);
  Result<iri::VolumeSnapshot> CreateSnapshot(const FakeClock& clock, iri::VolumeSnapshot snapshot);
  Status DeleteSnapshot(const FakeClock& clock, std::string_view id);
  Result<iri::Bucket> CreateBucket(const FakeClock& clock, iri::Bucket bucket);
  Status DeleteBucket(const FakeClock& clock, std::string_view id);

  // The host.
  std::vector<iri::LeaseState> Renew(const FakeClock& clock, const iri::LeaseRenewal& renewal);
  // The processes of living guests, and what they wait for.
  std::vector<iri::GuestProcess> Guests(const FakeClock& clock);
  Status ResumeGuest(const FakeClock& clock, std::string_view machine_uid);
  // In memory only: a runtime that died has none.
  void SetPullSecret(const std::string& uid, const std::string& docker_config) {
    pull_secrets_[uid] = docker_config;
  }
  Status SetIgnition(const FakeClock& clock, iri::Ignition ignition);
  const std::map<std::string, std::string>& pull_secrets() const { return pull_secrets_; }
  // The events of a machine whose guest runs, as lines. NotFound if none does.
  Result<std::vector<std::string>> LogsOf(const FakeClock& clock, std::string_view machine_uid);
  void SetProcess(std::string_view machine_id, int64_t pid, uint64_t start_ticks);
  bool has_processes() const { return options_.guests != FakeGuests::kSimulated; }
  Status SetReservations(const FakeClock& clock, std::vector<iri::Reservation> reservations);
  const std::vector<iri::Reservation>& reservations() const { return reservations_; }
  iri::HostCapacity Capacity(const FakeClock& clock);
  std::vector<iri::MachineClassStatus> MachineClasses() const;
  std::vector<iri::VolumeClassStatus> VolumeClasses() const;

  // As the runtime shows them, lies included.
  std::vector<iri::Machine> ShowMachines(const FakeClock& clock, const iri::ObjectFilter& filter);
  std::vector<iri::Volume> ShowVolumes(const FakeClock& clock, const iri::ObjectFilter& filter);
  std::vector<iri::VolumeSnapshot> ShowSnapshots(const FakeClock& clock,
                                                 const iri::ObjectFilter& filter);
  std::vector<iri::Bucket> ShowBuckets(const FakeClock& clock, const iri::ObjectFilter& filter);
  std::vector<iri::Event> ShowEvents(iri::ObjectKind kind, const iri::EventFilter& filter) const;

  // The history for watchers: the number of the last change, and those after one. Nullopt: it is
  // not remembered that far.
  uint64_t last_change() const { return last_change_; }
  std::optional<std::vector<iri::Change>> ChangesAfter(uint64_t number) const;

  Random& random() { return random_; }

  // For a journal: called with every object, lease and reservation set that a call has changed,
  // after the change.
  struct Touched {
    enum class What : uint8_t { kObject, kLeases, kReservations } what = What::kObject;
    iri::ObjectKind kind = iri::ObjectKind::kMachine;
    std::string id;
  };
  std::function<void(const Touched&)> on_touch;

  const Table<FakeMachine>& machines() const { return machines_; }
  const Table<FakeEntry<iri::Volume>>& volumes() const { return volumes_; }
  const Table<FakeEntry<iri::VolumeSnapshot>>& snapshots() const { return snapshots_; }
  const Table<FakeEntry<iri::Bucket>>& buckets() const { return buckets_; }
  const std::map<std::string, FakeLease, std::less<>>& leases() const { return leases_; }
  const std::string& boot_id() const { return boot_id_; }

  // What a journal brings back, before anything else is called.
  void Restore(FakeMachine machine);
  void Restore(FakeEntry<iri::Volume> volume);
  void Restore(FakeEntry<iri::VolumeSnapshot> snapshot);
  void Restore(FakeEntry<iri::Bucket> bucket);
  void RestoreLeases(std::map<std::string, FakeLease, std::less<>> leases);
  void RestoreReservations(std::vector<iri::Reservation> reservations);
  void RestoreBootId(std::string boot_id) { boot_id_ = std::move(boot_id); }

 private:
  struct StoredEvent {
    iri::ObjectKind kind;
    iri::Event event;
  };

  // Runs what is due at one moment; true if there was something at or before `now`.
  bool AdvanceOnce(const FakeClock& clock);
  void AdvanceGuest(FakeMachine& machine, const FakeClock& clock);
  template <class Entry>
  void RemoveGone(Table<Entry>& table, iri::ObjectKind kind, Time at);
  template <class Entry>
  void MakeReady(Table<Entry>& table, iri::ObjectKind kind, Time at);
  void ExpireLeases(const FakeClock& clock);

  Result<FakeMachine*> FindMachine(std::string_view id);
  Status MayStart(const iri::Machine& machine, Time now) const;
  void StartGuest(FakeMachine& machine, const FakeClock& clock);
  void KillGuest(FakeMachine& machine, std::string why, const FakeClock& clock);
  void ShutDown(FakeMachine& machine, const FakeClock& clock);
  iri::Machine Shown(const FakeMachine& machine) const;
  iri::ResourceVector Needs(const iri::Machine& machine) const;
  // Room for `more`, beside reservations that are not for `machine_uid`.
  Status CheckRoom(const iri::ResourceVector& more, std::string_view machine_uid) const;
  bool HasMachine(std::string_view uid) const;
  // How large a copy of the snapshot or volume is at least.
  Result<int64_t> SourceBytes(std::string_view id) const;
  // When the last of those that are being made of it is there; nullopt: there is none.
  std::optional<Time> ReadUntil(std::string_view id) const;
  bool IsIdempotent() const;
  // It comes back when whoever has the secrets gives them again; another keeps them on its disk.
  bool ForgetsSecrets() const { return options_.flavor == FakeFlavor::kBerth; }
  bool Hides();  // a list leaves this object out

  std::string NewId(std::string_view prefix);
  void Bump(FakeMachine& machine, std::string_view what);
  void Changed(iri::ObjectKind kind,
               iri::ChangeType type,
               const iri::ObjectMetadata& metadata,
               std::string_view what);
  void Said(iri::ObjectKind kind,
            const iri::ObjectMetadata& metadata,
            iri::EventType type,
            std::string_view reason,
            std::string message,
            const FakeClock& clock);

  FakeHostOptions options_;
  Random random_;
  std::string boot_id_;
  Table<FakeMachine> machines_;
  Table<FakeEntry<iri::Volume>> volumes_;
  Table<FakeEntry<iri::VolumeSnapshot>> snapshots_;
  Table<FakeEntry<iri::Bucket>> buckets_;
  std::map<std::string, FakeLease, std::less<>> leases_;  // by machine uid
  std::vector<iri::Reservation> reservations_;
  uint64_t last_change_ = 0;
  std::deque<iri::Change> changes_;  // the last is number last_change_
  std::deque<StoredEvent> events_;
  std::map<std::string, std::string> pull_secrets_;  // by uid
};

}  // namespace berth::runtime
