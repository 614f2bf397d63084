// SPDX-License-Identifier: Apache-2.0
#include "apis/registry.h"

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/berth/placement_review.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/core/resource_quota.h"
#include "apis/ipam/prefix.h"
#include "apis/ipam/prefix_allocation.h"
#include "apis/k8s/access_review.h"
#include "apis/k8s/certificate_signing_request.h"
#include "apis/k8s/config_map.h"
#include "apis/k8s/event.h"
#include "apis/k8s/identity_review.h"
#include "apis/k8s/lease.h"
#include "apis/k8s/namespace.h"
#include "apis/k8s/priority_class.h"
#include "apis/k8s/role.h"
#include "apis/k8s/role_binding.h"
#include "apis/k8s/secret.h"
#include "apis/networking/load_balancer.h"
#include "apis/networking/load_balancer_routing.h"
#include "apis/networking/nat_gateway.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/networking/network_policy.h"
#include "apis/networking/virtual_ip.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"

namespace berth::apis {

std::span<const meta::KindInfo* const> AllKinds() {
  static constexpr const meta::KindInfo* kKinds[] = {
      &k8s::kNamespaceKind,
      &k8s::kSecretKind,
      &k8s::kConfigMapKind,
      &k8s::kCoreEventKind,
      &k8s::kEventKind,
      &k8s::kLeaseKind,
      &k8s::kCertificateSigningRequestKind,
      &k8s::kPriorityClassKind,
      &k8s::kRoleKind,
      &k8s::kClusterRoleKind,
      &k8s::kRoleBindingKind,
      &k8s::kClusterRoleBindingKind,
      &k8s::kSubjectAccessReviewKind,
      &k8s::kLocalSubjectAccessReviewKind,
      &k8s::kSelfSubjectAccessReviewKind,
      &k8s::kSelfSubjectRulesReviewKind,
      &k8s::kSelfSubjectReviewKind,
      &k8s::kTokenReviewKind,
      &core::kResourceQuotaKind,
      &core::kReservationKind,
      &compute::kMachineClassKind,
      &compute::kMachinePoolKind,
      &compute::kMachineKind,
      &berth_dev::kMachineSetKind,
      &berth_dev::kMachineGroupKind,
      &berth_dev::kPlacementReviewKind,
      &storage::kVolumeClassKind,
      &storage::kVolumePoolKind,
      &storage::kVolumeKind,
      &storage::kVolumeSnapshotKind,
      &storage::kBucketClassKind,
      &storage::kBucketPoolKind,
      &storage::kBucketKind,
      &networking::kNetworkKind,
      &networking::kNetworkInterfaceKind,
      &networking::kNetworkPolicyKind,
      &networking::kVirtualIpKind,
      &networking::kLoadBalancerKind,
      &networking::kLoadBalancerRoutingKind,
      &networking::kNatGatewayKind,
      &ipam::kPrefixKind,
      &ipam::kPrefixAllocationKind,
  };
  return kKinds;
}

}  // namespace berth::apis
