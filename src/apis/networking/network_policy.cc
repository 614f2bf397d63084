// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/network_policy.h"

#include <algorithm>
#include <span>

#include "apis/core/rules.h"
#include "apis/networking/ports.h"

namespace berth::apis::networking {
namespace {

constexpr std::string_view kPeerKinds[] = {"NetworkInterface", "LoadBalancer", "VirtualIP"};

void AddType(std::vector<std::string>& types, std::string_view type) {
  if (std::ranges::find(types, type) == types.end()) types.emplace_back(type);
}

void SetDefaults(NetworkPolicy& object) {
  NetworkPolicySpec& spec = object.spec;
  if (!spec.ingress.empty()) AddType(spec.policy_types, kPolicyIngress);
  if (!spec.egress.empty()) AddType(spec.policy_types, kPolicyEgress);
}

void CheckIpBlock(const IpBlock& block, const meta::FieldPath& path, meta::FieldErrors& errors) {
  if (block.cidr.is_null()) errors.Required(path.Child("cidr"));
  for (size_t i = 0; i < block.except.size(); ++i) {
    if (block.cidr.Contains(block.except[i])) continue;
    errors.Invalid(path.Child("except").Index(i),
                   block.except[i].ToString(),
                   "must lie inside cidr " + block.cidr.ToString());
  }
}

void CheckPeers(std::span<const NetworkPolicyPeer> peers,
                const meta::FieldPath& path,
                meta::FieldErrors& errors) {
  for (size_t i = 0; i < peers.size(); ++i) {
    const NetworkPolicyPeer& peer = peers[i];
    const meta::FieldPath at = path.Index(i);
    core::CheckSources(int{peer.object_selector.has_value()} + int{peer.ip_block.has_value()},
                       at,
                       "objectSelector or ipBlock",
                       errors);
    if (peer.object_selector) {
      const meta::FieldPath selector = at.Child("objectSelector");
      const std::string& kind = peer.object_selector->kind;
      if (!kind.empty() && std::ranges::find(kPeerKinds, kind) == std::end(kPeerKinds)) {
        errors.NotSupported(
            selector.Child("kind"), kind, {std::begin(kPeerKinds), std::end(kPeerKinds)});
      }
      core::CheckSelector(peer.object_selector->selector, selector, errors);
    }
    if (peer.ip_block) CheckIpBlock(*peer.ip_block, at.Child("ipBlock"), errors);
  }
}

void CheckPorts(std::span<const NetworkPolicyPort> ports,
                const meta::FieldPath& path,
                meta::FieldErrors& errors) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const bool is_all = ports[i].port == 0 && !ports[i].end_port;
    if (!is_all) CheckPortRange(ports[i].port, ports[i].end_port, path.Index(i), errors);
  }
}

void Validate(const NetworkPolicy& object, meta::FieldErrors& errors) {
  const NetworkPolicySpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  core::CheckReference(spec.network_ref, path.Child("networkRef"), errors);
  core::CheckSelector(
      spec.network_interface_selector, path.Child("networkInterfaceSelector"), errors);
  for (size_t i = 0; i < spec.ingress.size(); ++i) {
    const meta::FieldPath at = path.Child("ingress").Index(i);
    CheckPorts(spec.ingress[i].ports, at.Child("ports"), errors);
    CheckPeers(spec.ingress[i].from, at.Child("from"), errors);
  }
  for (size_t i = 0; i < spec.egress.size(); ++i) {
    const meta::FieldPath at = path.Child("egress").Index(i);
    CheckPorts(spec.egress[i].ports, at.Child("ports"), errors);
    CheckPeers(spec.egress[i].to, at.Child("to"), errors);
  }
  const meta::FieldPath types = path.Child("policyTypes");
  if (spec.policy_types.empty()) errors.Required(types, "at least one of Ingress, Egress");
  core::UniqueNames unique;
  for (size_t i = 0; i < spec.policy_types.size(); ++i) {
    if (spec.policy_types[i].empty()) errors.Required(types.Index(i));
    unique.Check(spec.policy_types[i], types.Index(i), errors);
  }
}

void ValidateUpdate(const NetworkPolicy& now,
                    const NetworkPolicy& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.network_ref, before.spec.network_ref, core::SpecPath().Child("networkRef"), errors);
}

void ValidateStatusUpdate(const NetworkPolicy& now,
                          const NetworkPolicy& /*before*/,
                          meta::FieldErrors& errors) {
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
}

std::string NetworkCell(const NetworkPolicy& object) { return object.spec.network_ref.name; }
std::string SelectorCell(const NetworkPolicy& object) {
  const auto selector = meta::Selector::From(object.spec.network_interface_selector);
  return core::OrNone(selector.ok() ? selector->ToString() : "");
}

constexpr meta::Column kColumns[] = {
    {.name = "Network", .doc = "Network of the interfaces.", .cell = meta::Hook<&NetworkCell>},
    {.name = "Nic-Selector", .doc = "Interfaces it is for.", .cell = meta::Hook<&SelectorCell>},
};
constexpr std::string_view kShortNames[] = {"netpol"};

}  // namespace

constinit const meta::KindInfo kNetworkPolicyKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "NetworkPolicy",
    .plural = "networkpolicies",
    .singular = "networkpolicy",
    .short_names = kShortNames,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<NetworkPolicy>(),
    .has_status = true,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::networking
