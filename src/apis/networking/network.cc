// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/network.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::networking {
namespace {

// "namespace/name" of a network, seen from an object in `home`.
std::string FullName(const std::string& namespace_,
                     const std::string& name,
                     const std::string& home) {
  return (namespace_.empty() ? home : namespace_) + "/" + name;
}

void CheckPeering(const NetworkPeering& peering,
                  const meta::FieldPath& path,
                  core::UniqueNames& prefix_names,
                  core::UniqueNames& prefix_refs,
                  meta::FieldErrors& errors) {
  const meta::FieldPath ref = path.Child("networkRef");
  if (!peering.network_ref.name.empty()) {
    core::CheckSubdomainName(peering.network_ref.name, ref.Child("name"), errors);
  }
  if (!peering.network_ref.namespace_.empty()) {
    core::CheckLabelName(peering.network_ref.namespace_, ref.Child("namespace"), errors);
  }
  for (size_t i = 0; i < peering.prefixes.size(); ++i) {
    const PeeringPrefix& prefix = peering.prefixes[i];
    const meta::FieldPath at = path.Child("prefixes").Index(i);
    core::CheckItemName(prefix.name, at.Child("name"), prefix_names, errors);
    if (prefix.prefix_ref.name.empty()) continue;
    core::CheckItemName(
        prefix.prefix_ref.name, at.Child("prefixRef").Child("name"), prefix_refs, errors);
  }
}

void CheckPeerings(const Network& object, meta::FieldErrors& errors) {
  const std::string& home = object.metadata.namespace_;
  const std::string self = FullName(home, object.metadata.name, home);
  core::UniqueNames names;
  core::UniqueNames targets;
  core::UniqueNames prefix_names;
  core::UniqueNames prefix_refs;
  for (size_t i = 0; i < object.spec.peerings.size(); ++i) {
    const NetworkPeering& peering = object.spec.peerings[i];
    const meta::FieldPath at = core::SpecPath().Child("peerings").Index(i);
    core::CheckItemName(peering.name, at.Child("name"), names, errors);
    CheckPeering(peering, at, prefix_names, prefix_refs, errors);
    if (peering.network_ref.name.empty()) continue;
    const auto& ref = peering.network_ref;
    const std::string target = FullName(ref.namespace_, ref.name, home);
    if (target == self) {
      errors.Forbidden(at.Child("networkRef"), "a network cannot peer with itself");
    }
    targets.Check(target, at.Child("networkRef"), errors);
  }
}

void Validate(const Network& object, meta::FieldErrors& errors) {
  CheckPeerings(object, errors);
  const std::string& home = object.metadata.namespace_;
  const std::string self = FullName(home, object.metadata.name, home);
  core::UniqueNames claims;
  for (size_t i = 0; i < object.spec.incoming_peerings.size(); ++i) {
    const NetworkPeeringClaimRef& claim = object.spec.incoming_peerings[i];
    if (claim.name.empty()) continue;
    const meta::FieldPath at = core::SpecPath().Child("incomingPeerings").Index(i);
    const std::string peer = FullName(claim.namespace_, claim.name, home);
    core::CheckSubdomainName(claim.name, at.Child("name"), errors);
    if (peer == self) errors.Forbidden(at, "a network cannot peer with itself");
    claims.Check(peer, at, errors);
  }
}

void ValidateUpdate(const Network& now, const Network& before, meta::FieldErrors& errors) {
  core::CheckSetOnce(
      now.spec.provider_id, before.spec.provider_id, core::SpecPath().Child("providerID"), errors);
}

void ValidateStatusUpdate(const Network& now,
                          const Network& /*before*/,
                          meta::FieldErrors& errors) {
  core::UniqueNames names;
  for (size_t i = 0; i < now.status.peerings.size(); ++i) {
    names.Check(now.status.peerings[i].name,
                core::StatusPath().Child("peerings").Index(i).Child("name"),
                errors);
  }
}

std::string StateCell(const Network& object) { return core::OrUnknown(object.status.state); }
std::string ProviderCell(const Network& object) { return core::OrNone(object.spec.provider_id); }

constexpr meta::Column kColumns[] = {
    {.name = "State", .doc = "State of the network.", .cell = meta::Hook<&StateCell>},
    {.name = "ProviderID", .doc = "Its name at the provider.", .cell = meta::Hook<&ProviderCell>},
};
constexpr std::string_view kShortNames[] = {"net"};

}  // namespace

constinit const meta::KindInfo kNetworkKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Network",
    .plural = "networks",
    .singular = "network",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Network>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::networking
