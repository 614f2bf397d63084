// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/object_rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/k8s/certificate_signing_request.h"
#include "apis/k8s/namespace.h"
#include "apis/placement.h"
#include "meta/reflect.h"

namespace berth::apiserver {

namespace {

const meta::Field* FindField(const meta::KindInfo& kind, std::string_view name) {
  const auto found = std::ranges::find(kind.type->fields, name, &meta::Field::name);
  return found == kind.type->fields.end() ? nullptr : &*found;
}

// What only the server writes, in every update. Writers send it back as they read it, or not at
// all; what they made up about deletion is left for validation to refuse.
void KeepServerMetadata(meta::ObjectMeta& next, const meta::ObjectMeta& current) {
  next.name = current.name;
  next.generate_name = current.generate_name;
  next.namespace_ = current.namespace_;
  next.self_link.clear();
  next.uid = current.uid;
  next.generation = current.generation;
  next.creation_timestamp = current.creation_timestamp;
  if (current.deletion_timestamp) next.deletion_timestamp = current.deletion_timestamp;
  if (!next.deletion_grace_period_seconds) {
    next.deletion_grace_period_seconds = current.deletion_grace_period_seconds;
  }
  next.managed_fields = current.managed_fields;
}

// Whether a pool is in use is the server's to say.
void KeepInUse(meta::ObjectMeta& next, const meta::ObjectMeta& current) {
  const std::string_view in_use = apis::core::kPoolInUseFinalizer;
  const bool was = std::ranges::find(current.finalizers, in_use) != current.finalizers.end();
  const bool is = std::ranges::find(next.finalizers, in_use) != next.finalizers.end();
  if (was && !is) next.finalizers.emplace_back(in_use);
  if (is && !was) std::erase(next.finalizers, in_use);
}

}  // namespace

void CopyField(meta::Object& to, const meta::Object& from, std::string_view name) {
  const meta::Field* field = FindField(to.kind(), name);
  if (field == nullptr) return;
  field->type->ops->assign(FieldAt(to.data(), *field), FieldAt(from.data(), *field));
}

bool DesiredStateDiffers(const meta::Object& a, const meta::Object& b) {
  return std::ranges::any_of(a.kind().type->fields, [&](const meta::Field& field) {
    if (field.name == "metadata" || field.name == "status") return false;
    return !meta::DeepEqual(*field.type, FieldAt(a.data(), field), FieldAt(b.data(), field));
  });
}

void BecomeNew(meta::Object& object, std::string uid, WallTime now) {
  meta::ObjectMeta& metadata = object.metadata();
  metadata.uid = std::move(uid);
  metadata.resource_version.clear();
  metadata.self_link.clear();
  metadata.generation = 1;
  // metav1.Time has no fractions: what is stored must be what is shown.
  metadata.creation_timestamp = WallTime::FromSeconds(now.seconds());
  metadata.deletion_timestamp.reset();
  metadata.deletion_grace_period_seconds.reset();
  metadata.managed_fields.clear();
  std::erase(metadata.finalizers, apis::core::kPoolInUseFinalizer);
  if (object.kind().has_status) CopyField(object, meta::Object(object.kind()), "status");
}

void NoteRequestor(const Identity& sender, meta::Object& object) {
  if (&object.kind() != &apis::k8s::kCertificateSigningRequestKind) return;
  auto& spec = object.as<apis::k8s::CertificateSigningRequest>().spec;
  spec.username = sender.user;
  spec.uid = sender.uid;
  spec.groups = sender.groups;
  spec.extra = sender.extra;
}

void KeepWhatIsFixed(meta::Object& next,
                     const meta::Object& current,
                     client::Subresource subresource) {
  switch (subresource) {
    case client::Subresource::kNone:
      if (next.kind().has_status) CopyField(next, current, "status");
      break;
    case client::Subresource::kStatus: {
      meta::Object only_status = current;
      CopyField(only_status, next, "status");
      next = std::move(only_status);
      if (apis::IsPlaceable(next.kind())) {
        apis::core::KeepPlacementStatus(apis::PlacementOf(next), apis::PlacementOf(current));
      }
      break;
    }
    case client::Subresource::kFinalize: {
      meta::Object only_spec = current;
      CopyField(only_spec, next, "spec");
      next = std::move(only_spec);
      break;
    }
  }
  KeepServerMetadata(next.metadata(), current.metadata());
  if (apis::IsPool(next.kind())) KeepInUse(next.metadata(), current.metadata());
}

void UpdateGeneration(meta::Object& next, const meta::Object& current) {
  if (DesiredStateDiffers(next, current)) {
    next.metadata().generation = current.metadata().generation + 1;
  }
}

void SetPropagation(meta::Object& object, std::optional<client::Propagation> propagation) {
  if (!propagation) return;
  std::vector<std::string>& finalizers = object.metadata().finalizers;
  const std::string_view wanted = *propagation == client::Propagation::kOrphan ? kOrphanFinalizer
                                  : *propagation == client::Propagation::kForeground
                                      ? kForegroundFinalizer
                                      : std::string_view();
  std::erase_if(finalizers, [wanted](const std::string& finalizer) {
    return finalizer != wanted &&
           (finalizer == kOrphanFinalizer || finalizer == kForegroundFinalizer);
  });
  if (!wanted.empty() && std::ranges::find(finalizers, wanted) == finalizers.end()) {
    finalizers.emplace_back(wanted);
  }
}

void MarkDeleted(meta::Object& object, WallTime now) {
  meta::ObjectMeta& metadata = object.metadata();
  if (metadata.deletion_timestamp) return;
  metadata.deletion_timestamp = WallTime::FromSeconds(now.seconds());
  metadata.deletion_grace_period_seconds = 0;
  ++metadata.generation;
  if (&object.kind() == &apis::k8s::kNamespaceKind) {
    object.as<apis::k8s::Namespace>().status.phase = apis::k8s::kNamespaceTerminating;
  }
}

bool IsKept(const meta::Object& object) {
  if (!object.metadata().finalizers.empty()) return true;
  return &object.kind() == &apis::k8s::kNamespaceKind &&
         !object.as<apis::k8s::Namespace>().spec.finalizers.empty();
}

}  // namespace berth::apiserver
