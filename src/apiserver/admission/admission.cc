// SPDX-License-Identifier: Apache-2.0
#include "apiserver/admission/admission.h"

#include <algorithm>
#include <array>
#include <string>

#include "apis/compute/device_names.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/taints.h"
#include "apis/core/well_known.h"
#include "apis/k8s/event.h"
#include "apis/k8s/priority_class.h"
#include "apis/placement.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apiserver/admission/priority.h"
#include "apiserver/errors.h"
#include "base/strings.h"

namespace berth::apiserver {

namespace {

using apis::storage::Volume;
using apis::storage::VolumeClass;

// Classes are protected from their first moment; the controller lets go of those without users.
struct ClassFinalizer {
  const meta::KindInfo* kind;
  std::string_view finalizer;
};
const std::array kClassFinalizers = {
    ClassFinalizer{&apis::compute::kMachineClassKind, apis::core::kMachineClassFinalizer},
    ClassFinalizer{&apis::storage::kVolumeClassKind, apis::core::kVolumeClassFinalizer},
    ClassFinalizer{&apis::storage::kBucketClassKind, apis::core::kBucketClassFinalizer},
    ClassFinalizer{&apis::k8s::kPriorityClassKind, apis::core::kPriorityClassFinalizer},
};

void AddClassFinalizer(meta::Object& object) {
  for (const ClassFinalizer& row : kClassFinalizers) {
    if (row.kind != &object.kind()) continue;
    std::vector<std::string>& finalizers = object.metadata().finalizers;
    if (std::ranges::find(finalizers, row.finalizer) == finalizers.end()) {
      finalizers.emplace_back(row.finalizer);
    }
  }
}

// Since when a NoExecute taint is there, so that tolerationSeconds count from then whoever counts.
// Who sends the taint without it means the one that is there.
void NoteTaintTimes(const meta::Object* before, meta::Object& object, WallTime now) {
  for (apis::core::Taint& taint : apis::TaintsOf(object)) {
    if (taint.effect != apis::core::kNoExecute) {
      taint.time_added = {};
      continue;
    }
    if (taint.time_added != WallTime()) continue;
    taint.time_added = WallTime::FromSeconds(now.seconds());
    if (before == nullptr) continue;
    for (const apis::core::Taint& old : apis::TaintsOf(*before)) {
      if (old.key == taint.key && old.value == taint.value && old.effect == taint.effect &&
          old.time_added != WallTime()) {
        taint.time_added = old.time_added;
      }
    }
  }
}

Status CheckVolumeExpansion(const meta::Scheme& scheme,
                            const ObjectSource& source,
                            const Volume& before,
                            const Volume& now) {
  const bool stays = apis::storage::RefuseResize(now, before, apis::storage::kResizeStatic).empty();
  if (!now.spec.volume_class_ref || stays) return OkStatus();
  const KindErrors errors(scheme, apis::storage::kVolumeKind);
  const std::string& class_name = now.spec.volume_class_ref->name;
  const std::optional<meta::Object> found =
      source.Find(apis::storage::kVolumeClassKind, {.namespace_ = "", .name = class_name});
  if (!found) {
    return errors.Forbidden(
        now.metadata.name,
        "volume class " + Quote(class_name) +
            " does not exist, so it cannot be told whether the size may change");
  }
  const std::string refusal =
      apis::storage::RefuseResize(now, before, found->as<VolumeClass>().resize_policy);
  return refusal.empty() ? OkStatus() : errors.Forbidden(now.metadata.name, refusal);
}

}  // namespace

Status Complete(const meta::Scheme& scheme,
                const ObjectSource& source,
                const meta::Object* before,
                meta::Object& object,
                WallTime now) {
  // PROTOCOL 7.1: one spelling at rest, or two managers could own a field under two domains.
  for (meta::OwnerReference& owner : object.metadata().owner_references) {
    owner.api_version = scheme.CanonicalApiVersion(owner.api_version);
  }
  if (&object.kind() == &apis::k8s::kCoreEventKind) {
    auto& event = object.as<apis::k8s::CoreEvent>();
    event.involved_object.api_version =
        scheme.CanonicalApiVersion(event.involved_object.api_version);
    if (event.related) {
      event.related->api_version = scheme.CanonicalApiVersion(event.related->api_version);
    }
  }
  if (before == nullptr) AddClassFinalizer(object);
  if (apis::IsPool(object.kind())) NoteTaintTimes(before, object, now);
  if (&object.kind() == &apis::compute::kMachineKind) {
    TRY_STATUS(ResolvePriority(scheme, source, before, object));
    return apis::compute::AssignDeviceNames(object.as<apis::compute::Machine>());
  }
  return OkStatus();
}

Status Check(const meta::Scheme& scheme,
             const ObjectSource& source,
             const meta::Object* before,
             const meta::Object& object) {
  if (before != nullptr && &object.kind() == &apis::storage::kVolumeKind) {
    return CheckVolumeExpansion(scheme, source, before->as<Volume>(), object.as<Volume>());
  }
  return CheckPriority(scheme, source, before, object);
}

}  // namespace berth::apiserver
