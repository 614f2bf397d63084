// SPDX-License-Identifier: Apache-2.0
// MachineRuntime runs machines on one host: the C++ side of machine.v1alpha1. Bodies: the fake in
// runtime/fake, and iri/grpc for any runtime behind a socket. Both pass iri/conformance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/object.h"
#include "rt/task.h"

namespace berth::iri {

// kUnknown in any enumeration: the runtime answered a number that we do not know.
enum class Power : uint8_t { kOn, kOff, kUnknown = 255 };
// Berth's runtimes: a guest that was switched off or shut itself down is kStopped; one that
// crashed, was killed or lost its host's power is kTerminated, with a condition "Running" that says
// why.
enum class MachineState : uint8_t {
  kPending,
  kRunning,
  kSuspended,
  kTerminated,
  kTerminating,
  kStopped,
  kUnknown = 255
};
enum class AttachmentState : uint8_t { kPending, kAttached, kUnknown = 255 };

// "Running", "Off", "Attached": for tables and messages.
std::string_view PowerName(Power power);
std::string_view MachineStateName(MachineState state);
std::string_view AttachmentStateName(AttachmentState state);

// A disk that lives and dies with its machine.
struct LocalDisk {
  int64_t size_bytes = 0;
  std::string image;  // "": empty
  bool operator==(const LocalDisk&) const = default;
};
struct VolumeConnection {
  std::string driver;
  std::string handle;
  StringMap attributes;
  SecretMap secret_data;
  SecretMap encryption_data;
  int64_t effective_storage_bytes = 0;
  bool operator==(const VolumeConnection&) const = default;
};
// A machine's disk: a local one or a connected volume.
struct MachineVolume {
  std::string name;
  std::string device;  // "oda"
  std::optional<LocalDisk> local_disk;
  std::optional<VolumeConnection> connection;
  bool operator==(const MachineVolume&) const = default;
};
struct MachineNic {
  std::string name;
  std::string network_id;
  std::vector<std::string> ips;
  StringMap attributes;
  bool operator==(const MachineNic&) const = default;
};

struct MachineSpec {
  Power power = Power::kOn;
  std::string class_name;
  std::string ignition_data;  // bytes, secret
  std::vector<MachineVolume> volumes;
  std::vector<MachineNic> nics;
  std::string hostname;  // "": the runtime's choice
  bool operator==(const MachineSpec&) const = default;
};

struct AttachmentStatus {
  std::string name;
  std::string handle;
  AttachmentState state = AttachmentState::kPending;
  bool operator==(const AttachmentStatus&) const = default;
};
struct MachineCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_transition;
  bool operator==(const MachineCondition&) const = default;
};
struct MachineStatus {
  // What the runtime has acted on; compare with kIriMachineGenerationAnnotation.
  int64_t observed_generation = 0;
  MachineState state = MachineState::kPending;
  std::string image_ref;
  std::vector<AttachmentStatus> volumes;
  std::vector<AttachmentStatus> nics;
  std::vector<MachineCondition> conditions;
  bool operator==(const MachineStatus&) const = default;
};

struct Machine {
  ObjectMetadata metadata;
  MachineSpec spec;
  MachineStatus status;
  bool operator==(const Machine&) const = default;
};

struct MachineClass {
  std::string name;
  // As the wire has them: "cpu" in whole cores, rounded up; bytes. See ToResourceVector.
  std::map<std::string, int64_t, std::less<>> capabilities;
  bool operator==(const MachineClass&) const = default;
};
// What one machine of the class takes of the host.
ResourceVector ToResourceVector(const MachineClass& machine_class);

struct MachineClassStatus {
  MachineClass machine_class;
  int64_t quantity = 0;  // that many if the host ran nothing but this class
  bool operator==(const MachineClassStatus&) const = default;
};

// All methods: NotFound for an unknown id; Unavailable or Timeout if the outcome is not known.
class MachineRuntime {
 public:
  virtual ~MachineRuntime() = default;

  virtual rt::Task<Result<RuntimeVersion>> Version() = 0;
  virtual rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) = 0;

  // No match is an empty list, never NotFound.
  virtual rt::Task<Result<std::vector<Machine>>> ListMachines(ObjectFilter filter) = 0;
  // The runtime fills id, created_at and status. NOT idempotent in general: a runtime that serves
  // HostRuntime (iri/host.h) answers a second create with the same kMachineUidLabel with the object
  // that is there; any other runtime makes a second machine.
  virtual rt::Task<Result<Machine>> CreateMachine(Machine machine) = 0;
  // Ok: deletion has begun; list until it is gone. Idempotent.
  virtual rt::Task<Status> DeleteMachine(std::string id) = 0;
  // Replaces the whole map. Idempotent.
  virtual rt::Task<Status> UpdateMachineAnnotations(std::string id, StringMap annotations) = 0;
  // kOn boots a guest that does not run, whatever ended it. Idempotent.
  virtual rt::Task<Status> UpdateMachinePower(std::string id, Power power) = 0;
  // AlreadyExists if the machine has a volume of that name.
  virtual rt::Task<Status> AttachVolume(std::string id, MachineVolume volume) = 0;
  // NotFound if it has none: as good as done.
  virtual rt::Task<Status> DetachVolume(std::string id, std::string name) = 0;
  // Only for a changed effective_storage_bytes or key; a key counts from the next start on.
  // Idempotent.
  virtual rt::Task<Status> UpdateVolume(std::string id, MachineVolume volume) = 0;
  virtual rt::Task<Status> AttachNetworkInterface(std::string id, MachineNic nic) = 0;
  virtual rt::Task<Status> DetachNetworkInterface(std::string id, std::string name) = 0;

  // The RPC Status.
  virtual rt::Task<Result<std::vector<MachineClassStatus>>> ClassStatus() = 0;
  // A URL with a token for one use.
  virtual rt::Task<Result<std::string>> Exec(std::string id) = 0;
};

}  // namespace berth::iri
