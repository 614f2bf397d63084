// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/pool_authorizer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/core/well_known.h"
#include "apis/k8s/certificate_signing_request.h"
#include "apis/k8s/event.h"
#include "apis/k8s/lease.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "base/strings.h"
#include "client/certificates/pool_names.h"
#include "client/certificates/signers.h"
#include "meta/field_selector.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::storage::kBucketKind;
using apis::storage::kVolumeKind;

constexpr std::array<const meta::KindInfo*, 3> kPlaceable = {
    &kMachineKind, &kVolumeKind, &kBucketKind};

bool IsRead(std::string_view verb) { return verb == "get" || verb == "list" || verb == "watch"; }
bool IsChange(std::string_view verb) { return verb == "update" || verb == "patch"; }

bool IsClass(const meta::KindInfo& kind) {
  return kind.scope == meta::Scope::kCluster && kind.plural.ends_with("classes");
}
bool IsEvent(const meta::KindInfo& kind) {
  return &kind == &apis::k8s::kCoreEventKind || &kind == &apis::k8s::kEventKind;
}

// "ironcore-machinepool-lease", where IronCore's poollets keep their Leases.
std::string LeaseNamespace(const PoolIdentity& who) {
  return "ironcore-" + std::string(who.pool_kind->singular) + "-lease";
}

// Not the machine that has claimed it: that one may be on any pool, and names secrets of its own.
std::vector<apis::Reference> NamedBy(const meta::Object& object) {
  std::vector<apis::Reference> names = apis::ReferencesOf(object);
  std::erase_if(names, [](const apis::Reference& name) { return name.kind == &kMachineKind; });
  for (apis::Reference& name : apis::EphemeralsOf(object)) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::optional<PoolIdentity> PoolIdentityOf(const meta::Scheme& scheme, const Identity& identity) {
  auto name = client::PoolNameOf(scheme, identity.user, identity.groups);
  if (!name) return std::nullopt;
  const auto bound = std::ranges::find_if(kPlaceable, [&](const meta::KindInfo* kind) {
    return &apis::PoolKindOf(*kind) == name->pool_kind;
  });
  if (bound == kPlaceable.end()) return std::nullopt;
  return PoolIdentity{
      .pool_kind = name->pool_kind, .object_kind = *bound, .pool = std::move(name->pool)};
}

const meta::KindInfo* PoolAuthorizer::KindOf(const RequestInfo& request) const {
  if (request.kind != nullptr) return request.kind;
  for (const meta::KindInfo* kind : scheme_.kinds()) {
    if (kind->plural == request.resource && scheme_.GroupOf(*kind) == request.group) return kind;
  }
  return nullptr;
}

bool PoolAuthorizer::Allows(const Identity& identity, const RequestInfo& request) const {
  if (!request.is_resource) return false;
  const std::optional<PoolIdentity> who = PoolIdentityOf(scheme_, identity);
  if (!who) return false;
  const meta::KindInfo* kind = KindOf(request);
  if (kind == nullptr) return false;
  if (IsClass(*kind)) return IsRead(request.verb) && request.subresource.empty();
  if (kind == who->pool_kind) return AllowsOwnPool(*who, request);
  if (IsEvent(*kind)) return request.verb == "create" && request.subresource.empty();
  if (kind == &apis::k8s::kLeaseKind) {
    if (request.namespace_ != LeaseNamespace(*who) || !request.subresource.empty()) return false;
    // The name of a new one is in its body, see CheckPoolWrite.
    if (request.verb == "create") return request.name.empty() || request.name == who->pool;
    return request.name == who->pool && (IsRead(request.verb) || IsChange(request.verb));
  }
  if (kind == &apis::k8s::kCertificateSigningRequestKind) return AllowsRenewal(identity, request);
  if (kind == who->object_kind && AllowsObject(*who, request)) return true;
  if (kind == &apis::storage::kVolumeSnapshotKind && AllowsSnapshot(*who, request)) return true;
  return AllowsReferenced(*who, *kind, request);
}

bool PoolAuthorizer::AllowsOwnPool(const PoolIdentity& who, const RequestInfo& request) const {
  if (request.name != who.pool) return false;
  if (!request.subresource.empty() && request.subresource != "status") return false;
  return IsRead(request.verb) || IsChange(request.verb);
}

bool PoolAuthorizer::AllowsRenewal(const Identity& identity, const RequestInfo& request) const {
  if (!request.subresource.empty()) return false;
  if (request.verb == "create") return request.name.empty();  // for whom, see CheckPoolWrite
  if (!IsRead(request.verb) || request.name.empty()) return false;
  const auto asked = objects_.Find(apis::k8s::kCertificateSigningRequestKind,
                                   {.namespace_ = "", .name = request.name});
  return asked && asked->as<apis::k8s::CertificateSigningRequest>().spec.username == identity.user;
}

bool PoolAuthorizer::IsOn(const PoolIdentity& who, const meta::Object& object) const {
  const auto& reference = apis::PoolRefOf(object);
  if (!reference || reference->name != who.pool) return false;
  if (!apis::IsBound(object)) return true;
  // A pool of the same name that was made later is another one.
  const auto pool = objects_.Find(*who.pool_kind, {.namespace_ = "", .name = who.pool});
  return pool && pool->metadata().uid == apis::PlacementOf(object)->pool_uid;
}

bool PoolAuthorizer::AllowsObject(const PoolIdentity& who, const RequestInfo& request) const {
  if (!request.subresource.empty() && request.subresource != "status") return false;
  const bool is_many = request.verb == "list" || request.verb == "watch";
  if (is_many) {
    const auto selector = meta::FieldSelector::Parse(request.field_selector);
    const std::string field = "spec." + std::string(apis::PoolRefField(*who.object_kind)) + ".name";
    if (selector.ok() && selector->RequiredValue(field) == who.pool) return true;
  }
  if (!IsRead(request.verb) && !IsChange(request.verb)) return false;
  if (request.name.empty() || request.namespace_.empty()) return false;
  const auto object =
      objects_.Find(*who.object_kind, {.namespace_ = request.namespace_, .name = request.name});
  return object && IsOn(who, *object);
}

// A snapshot is made where its volume is: that pool works on it, and no other.
bool PoolAuthorizer::AllowsSnapshot(const PoolIdentity& who, const RequestInfo& request) const {
  if (who.object_kind != &kVolumeKind || request.name.empty()) return false;
  if (!request.subresource.empty() && request.subresource != "status") return false;
  if (!IsRead(request.verb) && !IsChange(request.verb)) return false;
  const auto snapshot = objects_.Find(apis::storage::kVolumeSnapshotKind,
                                      {.namespace_ = request.namespace_, .name = request.name});
  if (!snapshot) return false;
  if (IsOn(who, *snapshot)) return true;
  const std::string& volume = snapshot->as<apis::storage::VolumeSnapshot>().spec.volume_ref.name;
  const auto found = objects_.Find(kVolumeKind, {.namespace_ = request.namespace_, .name = volume});
  return found && IsOn(who, *found);
}

// Two steps: the machine names a volume, and the volume the Secret that opens it.
bool PoolAuthorizer::IsNamed(const PoolIdentity& who,
                             const meta::KindInfo& kind,
                             const client::ObjectKey& key) const {
  const auto is_it = [&](const apis::Reference& name) {
    return name.kind == &kind && name.namespace_ == key.namespace_ && name.name == key.name;
  };
  for (const meta::Object& object : objects_.OnPool(*who.object_kind, key.namespace_, who.pool)) {
    if (!IsOn(who, object)) continue;
    const std::vector<apis::Reference> names = NamedBy(object);
    if (std::ranges::any_of(names, is_it)) return true;
    for (const apis::Reference& name : names) {
      if (name.namespace_ != key.namespace_) continue;
      const auto named =
          objects_.Find(*name.kind, {.namespace_ = name.namespace_, .name = name.name});
      if (named && std::ranges::any_of(NamedBy(*named), is_it)) return true;
    }
  }
  return false;
}

bool PoolAuthorizer::AllowsReferenced(const PoolIdentity& who,
                                      const meta::KindInfo& kind,
                                      const RequestInfo& request) const {
  if (kind.scope != meta::Scope::kNamespaced || request.name.empty() ||
      request.namespace_.empty()) {
    return false;
  }
  const bool is_status = request.subresource == "status";
  if (!request.subresource.empty() && !is_status) return false;
  const bool writes_status = is_status && IsChange(request.verb) &&
                             &kind == &apis::networking::kNetworkInterfaceKind &&
                             who.object_kind == &kMachineKind;
  if (!IsRead(request.verb) && !writes_status) return false;
  return IsNamed(who, kind, {.namespace_ = request.namespace_, .name = request.name});
}

Status PoolAuthorizer::CheckEvent(const PoolIdentity& who, const meta::Object& event) const {
  const auto& about = event.as<apis::k8s::CoreEvent>().involved_object;
  const client::ObjectKey key{.namespace_ = about.namespace_, .name = about.name};
  const auto is_own = [&](const meta::KindInfo* kind) {
    if (kind->kind != about.kind || kind->storage != meta::Storage::kStored) return false;
    if (kind == who.pool_kind) return about.name == who.pool;
    if (kind->scope != meta::Scope::kNamespaced) return false;
    const auto object = objects_.Find(*kind, key);
    // A pool of another kind may have the same name.
    const bool is_snapshot =
        kind == &apis::storage::kVolumeSnapshotKind && who.object_kind == &kVolumeKind;
    const bool is_on = object && (kind == who.object_kind || is_snapshot) && IsOn(who, *object);
    return is_on || IsNamed(who, *kind, key);
  };
  if (std::ranges::any_of(scheme_.kinds(), is_own)) return OkStatus();
  return Forbidden("pool " + Quote(who.pool) +
                   " may tell of itself and of what is placed on it, not of " +
                   Printable(about.kind) + " " + Quote(about.name));
}

Status PoolAuthorizer::CheckWrite(const PoolIdentity& who,
                                  const meta::Object* before,
                                  const meta::Object& after) const {
  const meta::KindInfo& kind = after.kind();
  if (&kind == &apis::k8s::kCoreEventKind) return CheckEvent(who, after);
  if (&kind == &apis::k8s::kLeaseKind) {
    if (after.metadata().name == who.pool) return OkStatus();
    return Forbidden("pool " + Quote(who.pool) + " may write the Lease of its own name only, not " +
                     Quote(after.metadata().name));
  }
  if (&kind == &apis::k8s::kCertificateSigningRequestKind && before == nullptr) {
    // Who has sent it is in it already.
    const auto& spec = after.as<apis::k8s::CertificateSigningRequest>().spec;
    if (client::IsOurSigner(spec.signer_name)) {
      TRY(const pki::ClientSubject subject, client::SubjectToSign(scheme_, spec));
      if (subject.user == spec.username) return OkStatus();
    }
    return Forbidden("pool " + Quote(who.pool) + " may ask for its own certificate only");
  }
  if (before == nullptr) {
    return Forbidden("pool " + Quote(who.pool) + " may not create " + std::string(kind.plural));
  }
  meta::Object same = after;
  same.metadata().finalizers = before->metadata().finalizers;
  same.metadata().managed_fields = before->metadata().managed_fields;
  same.metadata().resource_version = before->metadata().resource_version;
  // Poollets acknowledge this one by removing it.
  const std::string requested(apis::core::kReconcileRequestedAtAnnotation);
  const auto& annotations = before->metadata().annotations;
  if (const auto asked = annotations.find(requested);
      asked != annotations.end() && !same.metadata().annotations.contains(requested)) {
    same.metadata().annotations.insert(*asked);
  }
  if (kind.has_status) same.CopyField("status", *before);
  if (same == *before) return OkStatus();
  return Forbidden(std::string(kind.singular) + " " + Quote(after.metadata().name) + ": pool " +
                   Quote(who.pool) + " may change its status and finalizers only");
}

}  // namespace berth::apiserver
