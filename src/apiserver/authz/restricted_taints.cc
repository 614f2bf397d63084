// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/restricted_taints.h"

#include <compare>
#include <set>
#include <string>
#include <vector>

#include "apis/core/reservation.h"
#include "apis/core/taints.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apiserver/authz/internal/asked_machine.h"

namespace berth::apiserver {
namespace {

// Whose toleration it is counts: that of a machine lets none of its volumes onto a pool.
enum class Whose : uint8_t { kOwn, kVolume };

struct Restricted {
  Whose whose;
  apis::core::Toleration toleration;
  auto operator<=>(const Restricted&) const = default;
};

void Collect(const std::vector<apis::core::Toleration>& tolerations,
             Whose whose,
             std::set<Restricted>& out) {
  for (const apis::core::Toleration& one : tolerations) {
    if (apis::core::IsRestrictedTaint(one.key)) out.insert({whose, one});
  }
}

std::set<Restricted> RestrictedOf(const meta::Object* object) {
  std::set<Restricted> found;
  if (object == nullptr) return found;
  if (const apis::compute::MachineSpec* machine = AskedMachine(object)) {
    Collect(machine->tolerations, Whose::kOwn, found);
    for (const apis::compute::MachineVolume& volume : machine->volumes) {
      if (!volume.ephemeral || !volume.ephemeral->volume_template) continue;
      Collect(volume.ephemeral->volume_template->spec.tolerations, Whose::kVolume, found);
    }
  } else if (&object->kind() == &apis::storage::kVolumeKind) {
    Collect(object->as<apis::storage::Volume>().spec.tolerations, Whose::kOwn, found);
  } else if (&object->kind() == &apis::storage::kBucketKind) {
    Collect(object->as<apis::storage::Bucket>().spec.tolerations, Whose::kOwn, found);
  }
  return found;
}

}  // namespace

Status CheckRestrictedTaints(const Authorizer& authorizer,
                             const Identity& identity,
                             const meta::Object* before,
                             const meta::Object& after) {
  const std::set<Restricted> wanted = RestrictedOf(&after);
  if (wanted.empty()) return OkStatus();
  const std::set<Restricted> held = RestrictedOf(before);
  for (const Restricted& one : wanted) {
    if (held.contains(one)) continue;
    // Pools are the cluster's, and so are their taints; there is no object of that name.
    TRY_STATUS(authorizer.Check(
        identity,
        {.is_resource = true,
         .verb = "tolerate",
         .group = authorizer.scheme().GroupOf(apis::core::kReservationKind),
         .version = std::string(apis::core::kReservationKind.version),
         .resource = "taints",
         .name = one.toleration.key.substr(apis::core::kRestrictedTaintPrefix.size())}));
  }
  return OkStatus();
}

}  // namespace berth::apiserver
