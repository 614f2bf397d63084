// SPDX-License-Identifier: Apache-2.0
// A Driver carries out steps on one runtime: the thin side of reconciling. One per kind.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "fleet/fleet.h"
#include "iri/runtimes.h"
#include "poollet/reconcile/desired.h"
#include "poollet/reconcile/report.h"
#include "poollet/reconcile/step.h"
#include "rt/task.h"

namespace berth::poollet {

// Of one call to a runtime, for runtimes that are not asked through a socket, and for a connection
// that is lost without a word: more than the 30 s that iri/grpc gives a call, so that its words
// come first.
constexpr Duration kCallLimit = Duration::Seconds(35);

// An object of this cluster that a runtime has.
struct Seen {
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  std::string id;
  std::string uid;
  std::string namespace_;
  std::string name;
  std::string state;
  std::string class_name;
  Amounts amounts;
  uint64_t fingerprint = 0;  // another one when anything that matters has changed
};

// Everything that a runtime has of one uid.
struct Observation {
  std::variant<std::vector<iri::Machine>,
               std::vector<iri::Volume>,
               std::vector<iri::VolumeSnapshot>,
               std::vector<iri::Bucket>>
      objects;
  std::vector<RuntimeObject> AsRuntimeObjects() const;
};

struct OfferedClass {
  std::string name;
  std::map<std::string, int64_t, std::less<>> capabilities;
  int64_t quantity = 0;  // how many (volumes: bytes) if nothing else ran; 0: not known
  bool operator==(const OfferedClass&) const = default;
};

// All methods: the errors of the runtime; Unavailable and Timeout leave the outcome open.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual fleet::ObjectKind kind() const = 0;
  virtual rt::Task<Result<iri::RuntimeVersion>> Version() = 0;
  virtual rt::Task<Result<std::vector<OfferedClass>>> Classes() = 0;
  virtual rt::Task<Result<std::vector<iri::Event>>> Events(iri::EventFilter filter) = 0;

  virtual rt::Task<Result<Observation>> Observe(std::string uid, std::string cluster_id) = 0;
  virtual rt::Task<Result<std::vector<Seen>>> Scan(std::string cluster_id) = 0;
  // Whether there is an object of this id, asked by something that changes nothing about it.
  // NotFound: there is none. MethodNotSupported: this kind has no such call, only lists tell.
  virtual rt::Task<Status> Ask(RuntimeObject object, std::shared_ptr<const Desired> desired) {
    (void)object;
    (void)desired;
    co_return Status(Reason::kMethodNotSupported, "it can only be listed");
  }
  // The id of what was made, or was there.
  virtual rt::Task<Result<std::string>> Create(std::shared_ptr<const Desired> desired,
                                               Situation situation) = 0;
  virtual rt::Task<Status> Delete(std::string id) = 0;
  // Carries out any step but kCreate, kDelete and those that do nothing.
  virtual rt::Task<Status> Perform(Step step,
                                   std::shared_ptr<const Desired> desired,
                                   std::shared_ptr<const Observation> observed) = 0;

  // The pull secret that the runtime may need now for the images of the object; "" for none.
  virtual std::string PullSecretFor(const Desired& desired, const Observation& observed) const {
    (void)desired;
    (void)observed;
    return {};
  }

  virtual Step Next(const Desired& desired,
                    const Observation& observed,
                    const Situation& situation) const = 0;
  virtual ObjectReport Report(const Desired& desired,
                              const Observation& observed,
                              const Progress& progress) const = 0;
};

// `host` is null for a foreign runtime.
std::unique_ptr<Driver> NewMachineDriver(iri::MachineRuntime& runtime, iri::HostRuntime* host);
std::unique_ptr<Driver> NewVolumeDriver(iri::VolumeRuntime& runtime);
std::unique_ptr<Driver> NewSnapshotDriver(iri::VolumeRuntime& runtime);
std::unique_ptr<Driver> NewBucketDriver(iri::BucketRuntime& runtime);

// The label that carries the uid of objects of this kind, and whose object it is.
std::string_view UidLabel(fleet::ObjectKind kind);

namespace internal {
Seen SeenOf(fleet::ObjectKind kind, const iri::ObjectMetadata& metadata);
iri::ObjectFilter OfUid(fleet::ObjectKind kind, std::string uid, std::string cluster_id);
iri::ObjectFilter OfCluster(std::string cluster_id);
}  // namespace internal

}  // namespace berth::poollet
