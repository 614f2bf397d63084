// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/load_balancer_routing.h"

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::networking {
namespace {

constexpr size_t kTargetsShown = 3;

void Validate(const LoadBalancerRouting& object, meta::FieldErrors& errors) {
  if (!object.network_ref.name.empty()) {
    core::CheckSubdomainName(
        object.network_ref.name, meta::FieldPath("networkRef").Child("name"), errors);
  }
  for (size_t i = 0; i < object.destinations.size(); ++i) {
    const LoadBalancerDestination& destination = object.destinations[i];
    const meta::FieldPath at = meta::FieldPath("destinations").Index(i);
    if (destination.ip.is_null()) errors.Required(at.Child("ip"));
    if (destination.target_ref && !destination.target_ref->name.empty()) {
      core::CheckSubdomainName(
          destination.target_ref->name, at.Child("targetRef").Child("name"), errors);
    }
  }
}

std::string TargetsCell(const LoadBalancerRouting& object) {
  std::vector<std::string> shown;
  for (const LoadBalancerDestination& destination : object.destinations) {
    if (shown.size() == kTargetsShown) break;
    shown.push_back(destination.ip.ToString());
  }
  std::string text = core::OrNone(Join(shown, ","));
  const size_t hidden = object.destinations.size() - shown.size();
  if (hidden > 0) text += " + " + std::to_string(hidden) + " more...";
  return text;
}

constexpr meta::Column kColumns[] = {
    {.name = "Targets", .doc = "Addresses of the targets.", .cell = meta::Hook<&TargetsCell>},
};
constexpr std::string_view kShortNames[] = {"lbr", "lbrt"};

}  // namespace

constinit const meta::KindInfo kLoadBalancerRoutingKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "LoadBalancerRouting",
    .plural = "loadbalancerroutings",
    .singular = "loadbalancerrouting",
    .short_names = kShortNames,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<LoadBalancerRouting>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
};

}  // namespace berth::apis::networking
