// SPDX-License-Identifier: Apache-2.0
// LoadBalancerRouting: where a load balancer sends connections. It has the name of its load
// balancer and belongs to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"

namespace berth::apis::networking {

struct LoadBalancerTargetRef {
  std::string uid;
  std::string name;
  std::string provider_id;
  bool operator==(const LoadBalancerTargetRef&) const = default;
};
BERTH_DESCRIBE(
    LoadBalancerTargetRef,
    "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerTargetRef",
    "The network interface behind an address.",
    BERTH_FIELD(uid, "uid", "Its UID.", {.required = true}),
    BERTH_FIELD(name, "name", "Its name.", {.required = true}),
    BERTH_FIELD(provider_id, "providerID", "Its name at the provider.", {.always = true}))

struct LoadBalancerDestination {
  meta::IpAddress ip;
  std::optional<LoadBalancerTargetRef> target_ref;
  bool operator==(const LoadBalancerDestination&) const = default;
};
BERTH_DESCRIBE(LoadBalancerDestination,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerDestination",
               "One target of a load balancer.",
               BERTH_FIELD(ip, "ip", "Address of the target.", {.always = true}),
               BERTH_FIELD(target_ref, "targetRef", "The network interface with the address."))

struct LoadBalancerRouting {
  meta::ObjectMeta metadata;
  core::LocalUidReference network_ref;
  std::vector<LoadBalancerDestination> destinations;
};
BERTH_DESCRIBE(
    LoadBalancerRouting,
    "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerRouting",
    "Where the load balancer of the same name sends connections.",
    BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
    BERTH_FIELD(network_ref, "networkRef", "The network of the targets.", {.always = true}),
    BERTH_FIELD(destinations, "destinations", "The targets.", {.always = true}))

extern const meta::KindInfo kLoadBalancerRoutingKind;
inline const meta::KindInfo& BerthKind(meta::Tag<LoadBalancerRouting>) {
  return kLoadBalancerRoutingKind;
}

}  // namespace berth::apis::networking
