// SPDX-License-Identifier: Apache-2.0
// What a host gets to know of an object: everything that it needs and nothing more. Pure: the
// objects around it are fetched by the caller, who asks NeedsOf until nothing is missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apis/compute/machine_pool.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "gateway/rules/copied_body.h"
#include "gateway/rules/words.h"
#include "meta/object.h"

namespace berth::gateway {

// Objects in the namespace of the one that is assembled, and classes, by name. nullopt: it does not
// exist.
struct Parts {
  template <class T>
  using Named = std::map<std::string, std::optional<T>>;
  Named<apis::storage::Volume> volumes;
  Named<apis::networking::NetworkInterface> interfaces;
  Named<apis::networking::Network> networks;
  Named<apis::k8s::Secret> secrets;
  Named<apis::storage::VolumeSnapshot> snapshots;
  Named<apis::storage::VolumeClass> volume_classes;  // whose capabilities never change

  bool empty() const {
    return volumes.empty() && interfaces.empty() && networks.empty() && secrets.empty() &&
           snapshots.empty() && volume_classes.empty();
  }
};

struct Need {
  const meta::KindInfo* kind = nullptr;
  std::string name;
  auto operator<=>(const Need&) const = default;
};
// What has to be looked up before the body is whole, given what was looked up already. Never more
// than a few rounds: a volume leads to its secrets, an interface to its network.
std::vector<Need> NeedsOf(const meta::Object& object, const Parts& parts);
// Files what was found (or not) for a need.
void Put(const Need& need, std::optional<meta::Object> found, Parts& parts);

// The interfaces that the machine names and nobody has, as they are when it has claimed them. It
// gets none before its claim is in the store: two machines never share one.
std::vector<apis::networking::NetworkInterface> InterfacesToClaim(const meta::Object& object,
                                                                  const Parts& parts);

// The same of volumes, for one that the machine names since it was placed: those it had then were
// claimed by the bind. Only volumes that have a place, which may be out of reach (CanReach).
std::vector<apis::storage::Volume> VolumesToClaim(const meta::Object& object, const Parts& parts);
// Whether machines of one pool can use volumes of the other (PROTOCOL 6.1).
bool CanReach(const apis::storage::VolumePool& volumes, const apis::compute::MachinePool& machines);

// An agent::Assign as it goes over the wire. What follows it there is merged into it.
struct EncodedAssign {
  std::string bytes;
  std::string hash;  // of the body and of the secrets in it, whosever it is
};
// All but the proof. REQUIRES: apis::IsPlaceable(object.kind()), it is bound, and NeedsOf(object,
// parts) is empty.
EncodedAssign AssembleAssign(const meta::Object& object,
                             const Parts& parts,
                             uint64_t incarnation,
                             CopiedBody& copied);

}  // namespace berth::gateway
