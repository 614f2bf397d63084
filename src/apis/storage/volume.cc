// SPDX-License-Identifier: Apache-2.0
#include "apis/storage/volume.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"
#include "apis/storage/volume_class.h"
#include "base/strings.h"

namespace berth::apis::storage {
namespace {

constexpr std::string_view kNoClass = "must not be set on a volume without volumeClassRef";

// Without a class a volume is only known here, so nothing can be asked of a pool.
void CheckWithoutClass(const VolumeSpec& spec,
                       const meta::FieldPath& path,
                       meta::FieldErrors& errors) {
  if (!spec.volume_pool_selector.empty()) {
    errors.Forbidden(path.Child("volumePoolSelector"), kNoClass);
  }
  if (spec.volume_pool_ref) errors.Forbidden(path.Child("volumePoolRef"), kNoClass);
  if (!spec.resources.empty()) errors.Forbidden(path.Child("resources"), kNoClass);
  if (!spec.tolerations.empty()) errors.Forbidden(path.Child("tolerations"), kNoClass);
  if (spec.data_source && spec.data_source->os_image) {
    errors.Forbidden(path.Child("dataSource").Child("osImage"), kNoClass);
  }
  if (spec.data_source && spec.data_source->volume_ref) {
    errors.Forbidden(path.Child("dataSource").Child("volumeRef"), kNoClass);
  }
}

void CheckWithClass(const VolumeSpec& spec,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  core::CheckReference(spec.volume_class_ref, path.Child("volumeClassRef"), errors);
  core::CheckLabels(spec.volume_pool_selector, path.Child("volumePoolSelector"), errors);
  core::CheckReference(spec.volume_pool_ref, path.Child("volumePoolRef"), errors);
  core::CheckRequiredResource(spec.resources, core::kStorage, path.Child("resources"), errors);
  core::CheckTolerations(spec.tolerations, path.Child("tolerations"), errors);
}

void CheckDataSource(const VolumeDataSource& source,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  core::CheckReference(source.volume_snapshot_ref, path.Child("volumeSnapshotRef"), errors);
  core::CheckReference(source.volume_ref, path.Child("volumeRef"), errors);
  if (source.volume_ref && (source.volume_snapshot_ref || source.os_image)) {
    errors.Forbidden(path.Child("volumeRef"),
                     std::string("must not be set together with ") +
                         (source.volume_snapshot_ref ? "volumeSnapshotRef" : "osImage"));
  }
  if (!source.os_image) return;
  if (source.volume_snapshot_ref) {
    errors.Forbidden(path.Child("osImage"), "must not be set together with volumeSnapshotRef");
  }
  if (source.os_image->image.empty()) errors.Required(path.Child("osImage").Child("image"));
}

void Validate(const Volume& object, meta::FieldErrors& errors) {
  CheckVolumeSpec(object.spec, core::SpecPath(), errors);
  const auto& source = object.spec.data_source;
  const std::string& name = object.metadata.name;
  if (source && source->volume_ref && !name.empty() && source->volume_ref->name == name) {
    errors.Invalid(core::SpecPath().Child("dataSource").Child("volumeRef").Child("name"),
                   name,
                   "must be another volume: this one is not there yet");
  }
}

void ValidateUpdate(const Volume& now, const Volume& before, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.volume_class_ref,
                       before.spec.volume_class_ref,
                       spec.Child("volumeClassRef"),
                       errors);
  core::CheckSetOnce(
      now.spec.volume_pool_ref, before.spec.volume_pool_ref, spec.Child("volumePoolRef"), errors);
  core::CheckImmutable(
      now.spec.encryption, before.spec.encryption, spec.Child("encryption"), errors);
}

void ValidateStatusUpdate(const Volume& now, const Volume& /*before*/, meta::FieldErrors& errors) {
  const meta::FieldPath status = core::StatusPath();
  core::CheckConditions(now.status.conditions, status.Child("conditions"), errors);
  core::CheckNotNegative(now.status.resources, status.Child("resources"), errors);
  if (now.status.access) {
    core::CheckReference(
        now.status.access->secret_ref, status.Child("access").Child("secretRef"), errors);
  }
}

std::string PoolCell(const Volume& object) {
  return core::ReferenceCell(object.spec.volume_pool_ref);
}
std::string ImageCell(const Volume& object) {
  const auto& source = object.spec.data_source;
  return core::OrNone(source && source->os_image ? source->os_image->image : "");
}
// Of what else the volume may begin with.
std::string SourceCell(const Volume& object) {
  const auto& source = object.spec.data_source;
  if (source && source->volume_ref) return "volume/" + source->volume_ref->name;
  if (source && source->volume_snapshot_ref) {
    return "volumesnapshot/" + source->volume_snapshot_ref->name;
  }
  return core::OrNone("");
}
std::string ClassCell(const Volume& object) {
  return core::ReferenceCell(object.spec.volume_class_ref);
}
std::string StateCell(const Volume& object) { return core::OrUnknown(object.status.state); }
// What it has, or, before it has any, what is asked for.
std::string SizeCell(const Volume& object) {
  for (const core::ResourceList* list : {&object.status.resources, &object.spec.resources}) {
    if (const auto size = list->find("storage"); size != list->end()) {
      return size->second.ToString();
    }
  }
  return core::OrNone("");
}

constexpr meta::Column kColumns[] = {
    {.name = "VolumePoolRef", .doc = "Pool of the volume.", .cell = meta::Hook<&PoolCell>},
    {.name = "Image", .doc = "What the volume was filled with.", .cell = meta::Hook<&ImageCell>},
    {.name = "VolumeClass", .doc = "Class of the volume.", .cell = meta::Hook<&ClassCell>},
    {.name = "State", .doc = "State of the volume.", .cell = meta::Hook<&StateCell>},
    {.name = "Size", .doc = "Size of the volume.", .cell = meta::Hook<&SizeCell>},
    {.name = "Source",
     .doc = "Volume or snapshot that the volume is a copy of.",
     .priority = 1,
     .cell = meta::Hook<&SourceCell>},
};

constexpr std::string_view kSubresources[] = {"binding"};
constexpr std::string_view kSelectors[] = {"spec.volumePoolRef.name",
                                           "spec.volumeClassRef.name",
                                           "status.placement.poolUID",
                                           "spec.encryption.secretRef.name",
                                           "spec.imagePullSecretRef.name",
                                           kVolumeSourceSelector};

}  // namespace

void CheckVolumeSpec(const VolumeSpec& spec,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  if (spec.volume_class_ref) {
    CheckWithClass(spec, path, errors);
  } else {
    CheckWithoutClass(spec, path, errors);
  }
  core::CheckReference(spec.claim_ref, path.Child("claimRef"), errors);
  if (spec.claim_ref && spec.unclaimable) {
    errors.Forbidden(path.Child("claimRef"), "must not be set on an unclaimable volume");
  }
  if (spec.encryption) {
    core::CheckReference(
        spec.encryption->secret_ref, path.Child("encryption").Child("secretRef"), errors);
  }
  core::CheckReference(spec.image_pull_secret_ref, path.Child("imagePullSecretRef"), errors);
  if (spec.data_source) CheckDataSource(*spec.data_source, path.Child("dataSource"), errors);
}

bool IsBeingCopiedFrom(const Volume& copy, std::string_view source) {
  const auto& from = copy.spec.data_source;
  if (!from || !from->volume_ref || from->volume_ref->name != source) return false;
  if (copy.status.state == "Available") return false;
  // One that is deleted meanwhile is read for until its host has let go of it.
  return copy.status.placement && !copy.status.placement->pool_uid.empty();
}

std::string RefuseResize(const Volume& now, const Volume& before, std::string_view resize_policy) {
  const meta::Quantity* size = core::FindResource(now.spec.resources, core::kStorage);
  const meta::Quantity* size_before = core::FindResource(before.spec.resources, core::kStorage);
  if (size == nullptr || size_before == nullptr || *size == *size_before) return "";
  const bool may_grow = resize_policy == kResizeExpandOnly;
  if (may_grow && *size > *size_before) return "";
  const std::string_view policy = resize_policy.empty() ? kResizeStatic : resize_policy;
  return std::string("spec.resources[storage] may not ") + (may_grow ? "shrink" : "change") +
         " from " + size_before->ToString() + " to " + size->ToString() +
         ", the resize policy of its class is " + std::string(policy);
}

constinit const meta::KindInfo kVolumeKind = {
    .group = "storage",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Volume",
    .plural = "volumes",
    .singular = "volume",
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Volume>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::storage
