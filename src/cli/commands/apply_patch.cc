// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/apply_patch.h"

#include "cli/api/known_kinds.h"
#include "cli/commands/last_applied.h"
#include "cli/failure.h"
#include "meta/kind.h"
#include "meta/patch/patch.h"

namespace berth::cli {

using meta::Value;

ApplyPatch PlanApplyPatch(const Resource& resource, const Value& modified, const Value& current) {
  const Value original = LastApplied(current);
  const meta::KindInfo* kind = FindKnownKind(resource);
  if (kind == nullptr) {
    return {"application/merge-patch+json",
            meta::ThreeWayJsonMergePatch(original, modified, current)};
  }
  return {"application/strategic-merge-patch+json",
          meta::ThreeWayMergePatch(original, modified, current, *kind->type)};
}

Status CheckNamed(const Placement& placement) {
  if (!placement.name.empty()) return OkStatus();
  return Advise(BadRequest("metadata.name is missing: apply needs a name to find the object by"),
                "berth create -f makes objects with generateName");
}

}  // namespace berth::cli
