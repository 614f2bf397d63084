// SPDX-License-Identifier: Apache-2.0
// The next step towards what is desired: pure decisions over what was just observed. Whoever
// carries a step out observes again before the next one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "iri/runtimes.h"
#include "poollet/reconcile/desired.h"

namespace berth::poollet {

struct Step {
  enum class Kind : uint8_t {
    kSettled,  // nothing to do until something changes
    kWait,     // nothing to do yet: `reason` says for what
    kStuck,    // a person must look: `reason` says why
    kCreate,
    kDelete,
    kPowerOn,
    kPowerOff,
    kAttachVolume,
    kDetachVolume,
    kUpdateVolume,
    kAttachNic,
    kDetachNic,
    kAnnotate,
    kGiveIgnition,  // again: the host was rebooted
    kExpand,
    kGone,  // nothing of it is left
  };
  Kind kind = Kind::kSettled;
  std::string id;      // of the runtime's object
  std::string part;    // name of the volume or interface
  std::string reason;  // one word
  std::string message;
  bool operator==(const Step&) const = default;
};

// What is known beside the objects themselves.
struct Situation {
  bool create_is_idempotent = true;  // the runtime finds an object by its uid label
  bool create_unknown = false;       // one was sent and its outcome may still show
  bool create_repeated = false;      // one was sent before, whatever came of it
  bool has_lease = false;            // P7: a live lease of this session covers the uid
  bool may_restart = true;           // enough time has passed since it last died
  bool secrets_missing = false;      // the body is from the record: its secrets are not
  bool was_available = false;        // a volume that held data once, a snapshot that was taken
  int64_t storage_allowed = 0;       // what the ledger has for a volume
};

// An object of a runtime as far as removal and what is missing from lists care.
struct RuntimeObject {
  std::string id;
  bool is_being_deleted = false;
  iri::StringMap annotations;
};

// All objects given are of this uid and of this cluster.
Step NextMachineStep(const Desired& desired,
                     std::span<const iri::Machine> observed,
                     const Situation& situation);
Step NextVolumeStep(const Desired& desired,
                    std::span<const iri::Volume> observed,
                    const Situation& situation);
Step NextSnapshotStep(const Desired& desired,
                      std::span<const iri::VolumeSnapshot> observed,
                      const Situation& situation);
Step NextBucketStep(const Desired& desired,
                    std::span<const iri::Bucket> observed,
                    const Situation& situation);
Step NextRemovalStep(std::span<const RuntimeObject> observed, const Situation& situation);

// What kCreate and kAnnotate send.
iri::Machine MachineToCreate(const DesiredMachine& desired, const Situation& situation);
iri::StringMap AnnotationsFor(const DesiredMachine& desired, const iri::Machine& observed);

// Why a machine that should be on is not; "" if it is, or is on its way.
enum class Death : uint8_t { kNone, kShutDown, kFailed, kHost };
Death DeathOf(const iri::Machine& machine);

}  // namespace berth::poollet
