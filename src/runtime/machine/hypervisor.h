// SPDX-License-Identifier: Apache-2.0
// A Hypervisor runs guests that are described as XML of libvirt (domain_xml.h). Bodies:
// LibvirtHypervisor, and FakeHypervisor for tests. Both pass the same contract.
//
// Every call ends within a limit. Unavailable: there is no connection; Timeout: the outcome is not
// known; TooManyRequests: too many calls wait already.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace berth::runtime {

enum class GuestState : uint8_t {
  kOff,
  kRunning,
  kPaused,    // PauseReason says why
  kStopping,  // it was told to shut down, or does so by itself
};
std::string_view GuestStateName(GuestState state);  // "Running"

// Why a guest is off.
enum class OffReason : uint8_t {
  kUnknown,    // it never ran, or whoever knew has forgotten
  kShutDown,   // from inside
  kDestroyed,  // by us
  kFailed,     // it crashed or was killed
};
std::string_view OffReasonName(OffReason reason);  // "ShutDown"

// Why a guest is paused.
enum class PauseReason : uint8_t {
  kTold,           // by us or by somebody else
  kDiskFull,       // a disk of it cannot be written; resumed, it tries that again
  kAsleep,         // it put itself to sleep
  kWatchdog,       // of the guest
  kLibvirtFailed,  // in the middle of something
};
// For a person: "its disk cannot be written".
std::string_view PauseReasonText(PauseReason reason);

struct Domain {
  std::string name;
  std::string uuid;
  std::string record;  // of its metadata; "" if there is none of ours
  GuestState state = GuestState::kOff;
  OffReason off_reason = OffReason::kUnknown;
  PauseReason pause_reason = PauseReason::kTold;
};

struct DomainEvent {
  enum class Kind : uint8_t {
    kDefined,  // for the first time
    kStarted,
    kPaused,         // `pause` says why
    kResumed,        // it was paused and runs
    kStopped,        // `reason` says how
    kDeviceAdded,    // while the guest runs
    kDeviceRemoved,  // the guest let go of it
    kLost,           // the connection: events may be missed
    kConnected,      // again: list everything
  };
  Kind kind = Kind::kStarted;
  std::string name;  // of the domain; "" for connections
  OffReason reason = OffReason::kUnknown;
  PauseReason pause = PauseReason::kTold;
  std::string detail;  // for a person
};

// Counters grow from the start of the guest.
struct DomainStatistics {
  std::string name;
  Duration cpu_time;
  int64_t memory_bytes = 0;  // resident, now
  int64_t disk_bytes = 0;    // taken, now
  int64_t disk_read_bytes = 0;
  int64_t disk_written_bytes = 0;
  int64_t network_received_bytes = 0;
  int64_t network_sent_bytes = 0;
};

// Devices of a guest with the XML of each: disks by their targets ("vda"), interfaces by their
// addresses.
using DeviceElements = std::map<std::string, std::string>;

enum class StartMode : uint8_t {
  kRun,
  kHeld,  // its process is there, and nothing of the guest runs until Resume
};

class Hypervisor {
 public:
  using Listener = std::function<void(const DomainEvent&)>;

  virtual ~Hypervisor() = default;

  // Called on the loop, in order. Null: nobody listens.
  virtual void Listen(Listener listener) = 0;
  // "": calls are answered; else what is wrong, for a person.
  virtual std::string Trouble() const = 0;

  virtual rt::Task<Result<std::vector<Domain>>> List() = 0;
  // Adds the domain, or replaces what its next start will be made of. BadRequest for bad XML.
  virtual rt::Task<Status> Define(std::string xml) = 0;
  // Forgets a domain that is off. Ok if there is none.
  virtual rt::Task<Status> Undefine(std::string name) = 0;

  // Ok if it runs already. NotFound for an unknown name, also below.
  virtual rt::Task<Status> Start(std::string name, StartMode mode) = 0;
  // Ok if it runs. Conflict if it is off or asleep.
  virtual rt::Task<Status> Resume(std::string name) = 0;
  // Presses its power button. Conflict if it does not run.
  virtual rt::Task<Status> PressPower(std::string name) = 0;
  // Ends it at once. Ok if it is off.
  virtual rt::Task<Status> Destroy(std::string name) = 0;

  // On the running guest only: Define is for the next start. Conflict if it does not run.
  virtual rt::Task<Status> AttachDevice(std::string name, std::string xml) = 0;
  // Asks the guest to let go of it: done when LiveDevices no longer has it.
  virtual rt::Task<Status> DetachDevice(std::string name, std::string xml) = 0;
  // Of the running guest. Each element is fit for DetachDevice.
  virtual rt::Task<Result<DeviceElements>> LiveDevices(std::string name) = 0;
  // Of the running guest; it sees the new size at once.
  virtual rt::Task<Status> ResizeDisk(std::string name, std::string target, int64_t bytes) = 0;

  // Kept in memory, given to no one but guests. Replaces.
  virtual rt::Task<Status> SetSecret(std::string uuid,
                                     std::string description,
                                     std::string value) = 0;
  // Ok if there is none.
  virtual rt::Task<Status> RemoveSecret(std::string uuid) = 0;

  // Of the guests that run.
  virtual rt::Task<Result<std::vector<DomainStatistics>>> Statistics() = 0;
  // "QEMU 7.2.22, libvirt 9.0.0".
  virtual rt::Task<Result<std::string>> Version() = 0;
};

}  // namespace berth::runtime
