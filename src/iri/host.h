// SPDX-License-Identifier: Apache-2.0
// HostRuntime is what Berth adds to the runtime interface (berth.iri.v1, on the same socket): a
// watch, the host's capacity counted once, leases and reservations. A runtime without it answers
// MethodNotSupported; then one polls, shares per-class counts by fractions, does not place Move
// machines there, and creates with power off first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/attach.h"
#include "iri/object.h"
#include "rt/task.h"

namespace berth::iri {

enum class ObjectKind : uint8_t { kMachine, kVolume, kBucket, kVolumeSnapshot, kUnknown = 255 };
std::string_view ObjectKindName(ObjectKind kind);  // "Machine"

enum class ChangeType : uint8_t {
  kResync,  // history before this cursor is not known: list everything again, then read on
  kCreated,
  kChanged,
  kDeleted,
  kUnknown = 255
};
std::string_view ChangeTypeName(ChangeType type);  // "Resync"

// Says that something changed, not to what: the reader lists the object. Several changes of one
// object may arrive as one.
struct Change {
  ChangeType type = ChangeType::kResync;
  std::string cursor;  // gives this place back to Watch
  ObjectKind kind = ObjectKind::kMachine;
  std::string id;
  std::string uid;   // of its uid label; "" without one
  std::string what;  // "state", "power", "volumes", "lease": for a person
  bool operator==(const Change&) const = default;
};

// A watch in progress.
class ChangeStream {
 public:
  virtual ~ChangeStream() = default;
  // The next change, in order. Unavailable when the runtime is gone: watch again with the last
  // cursor. One reader at a time; a cancelled read loses nothing.
  virtual rt::Task<Result<Change>> Next() = 0;
  // Ends the watch; awaited before the stream is destroyed. Always ok. Idempotent.
  virtual rt::Task<Status> Close() = 0;
};

// Counters grow from the start of the instance.
struct InstanceStatistics {
  ObjectKind kind = ObjectKind::kMachine;
  std::string id;
  std::string uid;
  Duration cpu_time;
  int64_t memory_bytes = 0;  // now
  int64_t disk_bytes = 0;    // now
  int64_t disk_read_bytes = 0;
  int64_t disk_written_bytes = 0;
  int64_t network_received_bytes = 0;
  int64_t network_sent_bytes = 0;
  bool operator==(const InstanceStatistics&) const = default;
};

struct HostCapacity {
  ResourceVector total;  // of the host, shared by everything that runs on it
  ResourceVector used;   // promised to the runtime's objects at their full size
  ResourceVector kept;   // of that, for no object: images, files that nobody knows
  ResourceVector load;   // measured now
  StringMap facts;       // "cpu-model", "kernel": hardware, for people
  std::string boot_id;   // another one after the host was rebooted
  std::vector<InstanceStatistics> instances;
  std::string trouble;  // why it can take nothing new now; "" if it can
  bool operator==(const HostCapacity&) const = default;
};

// The guests of Move machines live by leases (PROTOCOL 3.3).
struct LeaseRenewal {
  // On the host's monotonic clock, rt::Loop::Now() of any process there.
  Time deadline;
  // These guests live until `deadline`; the first time this also puts them under a lease. A guest
  // that is not named keeps the deadline that it has.
  std::vector<std::string> machine_uids;
  // Applied first: these leases are forgotten, also those that have run out. A guest that was
  // killed stays dead until it is switched on again.
  std::vector<std::string> released_uids;
};
struct LeaseState {
  std::string machine_uid;
  Time deadline;
  bool fenced = false;  // the deadline has passed and the guest is dead
  bool operator==(const LeaseState&) const = default;
};

// A guest that is a process of this host: what a fencer outside of the runtime needs to kill it.
struct GuestProcess {
  std::string machine_uid;
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // of /proc/PID/stat: a later process of the same pid is another one
  bool held = false;         // it waits for ResumeGuest: nothing of the guest runs yet
  bool operator==(const GuestProcess&) const = default;
};

// Room that the runtime keeps free for one who comes later.
struct Reservation {
  std::string id;
  ResourceVector resources;
  std::string machine_uid;  // who may take it: a machine with this uid, or anyone if ""
  bool operator==(const Reservation&) const = default;
};

// Who an object is at the registries of its images.
struct PullSecret {
  std::string uid;            // of a machine or a volume
  std::string docker_config;  // as a Secret of type kubernetes.io/dockerconfigjson holds it
};
inline constexpr size_t kPullSecretBytesMax = size_t{64} * 1024;

// Ignition or user data of a machine that is there.
struct Ignition {
  std::string machine_uid;
  std::string data;  // "": it has none any more
};

class HostRuntime {
 public:
  virtual ~HostRuntime() = default;

  // Changes after `cursor`. "" or a cursor that is too old or foreign: the first change is kResync.
  virtual rt::Task<Result<std::unique_ptr<ChangeStream>>> Watch(std::string cursor) = 0;

  virtual rt::Task<Result<HostCapacity>> Capacity() = 0;

  // The runtime kills each guest at its deadline, whoever else is alive, and does not start a
  // machine whose lease has run out, or one with kOnPoolLossAnnotation "Move" that has none:
  // Forbidden. A deadline never moves back. A lease that has run out stays `fenced`, whatever is
  // renewed, until it is released: to start such a guest again, release and renew, then switch it
  // on. The answer names every lease that the runtime knows. Idempotent.
  virtual rt::Task<Result<std::vector<LeaseState>>> RenewLease(LeaseRenewal renewal) = 0;

  // Replaces the whole set: what is not named is given up. Conflict if they do not fit beside what
  // is there; nothing is changed then. Idempotent.
  virtual rt::Task<Status> SetReservations(std::vector<Reservation> reservations) = 0;
  virtual rt::Task<Result<std::vector<Reservation>>> ListReservations() = 0;

  // For runtimes whose guests are processes and that leave their leases to somebody else:
  // RenewLease is MethodNotSupported there. A guest with kOnPoolLossAnnotation "Move" starts held:
  // its process is there, and nothing of it runs until whoever will kill it at its deadline has it.
  // MethodNotSupported: guests are no processes, or none of anybody's business.
  virtual rt::Task<Result<std::vector<GuestProcess>>> ListGuests() {
    co_return Status(Reason::kMethodNotSupported, "this runtime shows no processes");
  }
  // Lets a held guest run. NotFound if there is none; idempotent.
  virtual rt::Task<Status> ResumeGuest(std::string machine_uid) {
    (void)machine_uid;
    co_return Status(Reason::kMethodNotSupported, "this runtime holds no guests");
  }

  // Kept in memory only, until the object has its images or is gone. It may come before the object
  // does. One that is new to the runtime is tried at once. Idempotent.
  virtual rt::Task<Status> SetPullSecret(PullSecret secret) {
    (void)secret;
    co_return Status(Reason::kMethodNotSupported, "this runtime takes no pull secrets");
  }

  // NotFound if no guest of that uid runs; MethodNotSupported for what the runtime does not have.
  virtual rt::Task<Result<std::unique_ptr<AttachStream>>> Attach(AttachRequest request) {
    co_return Status(Reason::kMethodNotSupported, "this runtime offers no " + request.what);
  }

  // For a machine with the condition kSecretsReadyCondition "False": a reboot of the host took what
  // it was created with, and its guest is not started without. In memory only, as then; a guest
  // that runs sees it at its next start. NotFound if there is no machine of that uid; idempotent.
  virtual rt::Task<Status> SetIgnition(Ignition ignition) {
    (void)ignition;
    co_return Status(Reason::kMethodNotSupported, "this runtime takes no ignition data twice");
  }
};

}  // namespace berth::iri
