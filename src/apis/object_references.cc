// SPDX-License-Identifier: Apache-2.0
#include "apis/object_references.h"

#include <algorithm>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/well_known.h"
#include "apis/ipam/prefix.h"
#include "apis/ipam/prefix_allocation.h"
#include "apis/k8s/priority_class.h"
#include "apis/k8s/secret.h"
#include "apis/networking/load_balancer.h"
#include "apis/networking/nat_gateway.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/networking/network_policy.h"
#include "apis/networking/virtual_ip.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"

namespace berth::apis {
namespace {

class Collector {
 public:
  explicit Collector(std::string home) : home_(std::move(home)) {}

  void Add(const meta::KindInfo& kind,
           std::string_view name,
           std::string field,
           Hold hold = Hold::kMention) {
    AddIn(kind, home_, name, std::move(field), hold);
  }
  void Add(const meta::KindInfo& kind,
           const std::optional<core::LocalObjectReference>& reference,
           std::string field,
           Hold hold = Hold::kMention) {
    if (reference) Add(kind, reference->name, std::move(field), hold);
  }
  void AddIn(const meta::KindInfo& kind,
             std::string_view namespace_name,
             std::string_view name,
             std::string field,
             Hold hold) {
    if (name.empty()) return;
    const bool is_cluster = kind.scope == meta::Scope::kCluster;
    references_.push_back({.kind = &kind,
                           .namespace_ = std::string(is_cluster ? "" : namespace_name),
                           .name = std::string(name),
                           .field = std::move(field),
                           .hold = hold});
  }
  const std::string& home() const { return home_; }
  std::vector<Reference> Take() { return std::move(references_); }

 private:
  std::string home_;
  std::vector<Reference> references_;
};

void CollectVolume(const storage::VolumeSpec& spec, const std::string& at, Collector& out) {
  out.Add(storage::kVolumeClassKind, spec.volume_class_ref, at + ".volumeClassRef", Hold::kInUse);
  out.Add(storage::kVolumePoolKind, spec.volume_pool_ref, at + ".volumePoolRef");
  if (spec.claim_ref) out.Add(compute::kMachineKind, spec.claim_ref->name, at + ".claimRef");
  if (spec.encryption) {
    out.Add(k8s::kSecretKind, spec.encryption->secret_ref.name, at + ".encryption.secretRef");
  }
  out.Add(k8s::kSecretKind, spec.image_pull_secret_ref, at + ".imagePullSecretRef");
  if (spec.data_source) {
    out.Add(storage::kVolumeSnapshotKind,
            spec.data_source->volume_snapshot_ref,
            at + ".dataSource.volumeSnapshotRef");
    // Not what it is a copy of: a pool may read what its objects name, and the secrets of that.
  }
}

void CollectNic(const networking::NetworkInterfaceSpec& spec,
                const std::string& at,
                Collector& out) {
  out.Add(networking::kNetworkKind, spec.network_ref.name, at + ".networkRef", Hold::kInUse);
  if (spec.machine_ref) out.Add(compute::kMachineKind, spec.machine_ref->name, at + ".machineRef");
  if (spec.virtual_ip) {
    out.Add(networking::kVirtualIpKind,
            spec.virtual_ip->virtual_ip_ref,
            at + ".virtualIP.virtualIPRef");
  }
}

void Collect(const compute::Machine& machine, Collector& out) {
  const compute::MachineSpec& spec = machine.spec;
  out.Add(compute::kMachineClassKind,
          spec.machine_class_ref.name,
          "spec.machineClassRef",
          Hold::kInUse);
  out.Add(compute::kMachinePoolKind, spec.machine_pool_ref, "spec.machinePoolRef");
  for (size_t i = 0; i < spec.network_interfaces.size(); ++i) {
    const compute::MachineNetworkInterface& nic = spec.network_interfaces[i];
    const std::string at = "spec.networkInterfaces[" + std::to_string(i) + "]";
    out.Add(
        networking::kNetworkInterfaceKind, nic.network_interface_ref, at + ".networkInterfaceRef");
    if (nic.ephemeral && nic.ephemeral->network_interface_template) {
      CollectNic(nic.ephemeral->network_interface_template->spec,
                 at + ".ephemeral.networkInterfaceTemplate.spec",
                 out);
    }
  }
  for (size_t i = 0; i < spec.volumes.size(); ++i) {
    const compute::MachineVolume& volume = spec.volumes[i];
    const std::string at = "spec.volumes[" + std::to_string(i) + "]";
    out.Add(storage::kVolumeKind, volume.volume_ref, at + ".volumeRef");
    if (volume.ephemeral && volume.ephemeral->volume_template) {
      CollectVolume(
          volume.ephemeral->volume_template->spec, at + ".ephemeral.volumeTemplate.spec", out);
    }
  }
  if (spec.ignition_ref) out.Add(k8s::kSecretKind, spec.ignition_ref->name, "spec.ignitionRef");
  out.Add(k8s::kSecretKind, spec.image_pull_secret_ref, "spec.imagePullSecretRef");
}

void Collect(const storage::Volume& volume, Collector& out) {
  CollectVolume(volume.spec, "spec", out);
  if (volume.status.access) {
    out.Add(k8s::kSecretKind, volume.status.access->secret_ref, "status.access.secretRef");
  }
}

void Collect(const storage::VolumeSnapshot& snapshot, Collector& out) {
  out.Add(storage::kVolumeKind, snapshot.spec.volume_ref.name, "spec.volumeRef");
  out.Add(storage::kVolumePoolKind, snapshot.spec.volume_pool_ref, "spec.volumePoolRef");
}

void Collect(const storage::Bucket& bucket, Collector& out) {
  out.Add(
      storage::kBucketClassKind, bucket.spec.bucket_class_ref, "spec.bucketClassRef", Hold::kInUse);
  out.Add(storage::kBucketPoolKind, bucket.spec.bucket_pool_ref, "spec.bucketPoolRef");
  if (bucket.status.access) {
    out.Add(k8s::kSecretKind, bucket.status.access->secret_ref, "status.access.secretRef");
  }
}

void Collect(const networking::NetworkInterface& nic, Collector& out) {
  CollectNic(nic.spec, "spec", out);
}

void Collect(const networking::Network& network, Collector& out) {
  const auto& claims = network.spec.incoming_peerings;
  for (size_t i = 0; i < claims.size(); ++i) {
    out.AddIn(networking::kNetworkKind,
              claims[i].namespace_.empty() ? out.home() : claims[i].namespace_,
              claims[i].name,
              "spec.incomingPeerings[" + std::to_string(i) + "]",
              Hold::kInUse);
  }
}

void Collect(const networking::VirtualIp& virtual_ip, Collector& out) {
  if (!virtual_ip.spec.target_ref) return;
  out.Add(networking::kNetworkInterfaceKind, virtual_ip.spec.target_ref->name, "spec.targetRef");
}

// Kinds that use a network and nothing else.
template <class T>
void CollectNetworkUser(const T& object, Hold hold, Collector& out) {
  out.Add(networking::kNetworkKind, object.spec.network_ref.name, "spec.networkRef", hold);
}
void Collect(const networking::LoadBalancer& object, Collector& out) {
  CollectNetworkUser(object, Hold::kInUse, out);
}
void Collect(const networking::NatGateway& object, Collector& out) {
  CollectNetworkUser(object, Hold::kInUse, out);
}
void Collect(const networking::NetworkPolicy& object, Collector& out) {
  CollectNetworkUser(object, Hold::kMention, out);
}

void Collect(const ipam::Prefix& prefix, Collector& out) {
  out.Add(ipam::kPrefixKind, prefix.spec.parent_ref, "spec.parentRef");
}

void Collect(const ipam::PrefixAllocation& allocation, Collector& out) {
  out.Add(ipam::kPrefixKind, allocation.spec.prefix_ref, "spec.prefixRef", Hold::kInUse);
}

template <class T>
bool CollectAs(const meta::Object& object, Collector& out) {
  if (object.kind().type != &meta::TypeInfoOf<T>()) return false;
  Collect(object.as<T>(), out);
  return true;
}

template <class... T>
void CollectAny(const meta::Object& object, Collector& out) {
  (CollectAs<T>(object, out) || ...);
}

}  // namespace

std::vector<Reference> ReferencesOf(const meta::Object& object) {
  Collector out(object.metadata().namespace_);
  CollectAny<compute::Machine,
             storage::Volume,
             storage::VolumeSnapshot,
             storage::Bucket,
             networking::Network,
             networking::NetworkInterface,
             networking::VirtualIp,
             networking::LoadBalancer,
             networking::NatGateway,
             networking::NetworkPolicy,
             ipam::Prefix,
             ipam::PrefixAllocation>(object, out);
  return out.Take();
}

std::vector<Reference> EphemeralsOf(const meta::Object& object) {
  Collector out(object.metadata().namespace_);
  if (&object.kind() != &compute::kMachineKind) return {};
  const auto& machine = object.as<compute::Machine>();
  const std::string prefix = machine.metadata.name + "-";
  for (const auto& volume : machine.spec.volumes) {
    if (!volume.ephemeral) continue;
    out.Add(storage::kVolumeKind, prefix + volume.name, "spec.volumes[" + volume.name + "]");
  }
  for (const auto& nic : machine.spec.network_interfaces) {
    if (!nic.ephemeral) continue;
    out.Add(networking::kNetworkInterfaceKind,
            prefix + nic.name,
            "spec.networkInterfaces[" + nic.name + "]");
  }
  return out.Take();
}

std::optional<core::LocalUidReference> ClaimOf(const meta::Object& part) {
  if (&part.kind() == &storage::kVolumeKind) return part.as<storage::Volume>().spec.claim_ref;
  if (&part.kind() == &networking::kNetworkInterfaceKind) {
    return part.as<networking::NetworkInterface>().spec.machine_ref;
  }
  return std::nullopt;
}

bool NamesPart(const meta::Object& machine, const meta::Object& part) {
  const std::string& name = part.metadata().name;
  const auto is_part = [&](const Reference& reference) {
    return reference.kind == &part.kind() && reference.name == name;
  };
  if (std::ranges::any_of(ReferencesOf(machine), is_part)) return true;
  if (std::ranges::any_of(EphemeralsOf(machine), is_part)) return true;
  const auto& status = machine.as<compute::Machine>().status;
  if (&part.kind() == &storage::kVolumeKind) {
    return std::ranges::any_of(status.volumes,
                               [&](const auto& item) { return item.volume_ref.name == name; });
  }
  return std::ranges::any_of(status.network_interfaces, [&](const auto& item) {
    return item.network_interface_ref.name == name;
  });
}

bool IsGone(const meta::ObjectMeta& metadata) {
  if (!metadata.deletion_timestamp) return false;
  return std::ranges::none_of(metadata.finalizers, [](const std::string& finalizer) {
    return finalizer == kPlacementFinalizer || finalizer == core::kMachineFinalizer ||
           finalizer == core::kVolumeFinalizer || finalizer == core::kInUseFinalizer;
  });
}

bool IsKeptForUser(const meta::ObjectMeta& metadata) {
  return metadata.deletion_timestamp &&
         std::ranges::find(metadata.finalizers, core::kInUseFinalizer) != metadata.finalizers.end();
}

std::string_view InUseFinalizer(const meta::KindInfo& kind) {
  if (&kind == &compute::kMachineClassKind) return core::kMachineClassFinalizer;
  if (&kind == &storage::kVolumeClassKind) return core::kVolumeClassFinalizer;
  if (&kind == &storage::kBucketClassKind) return core::kBucketClassFinalizer;
  if (&kind == &k8s::kPriorityClassKind) return core::kPriorityClassFinalizer;
  if (&kind == &storage::kVolumeKind || &kind == &networking::kNetworkInterfaceKind ||
      &kind == &networking::kNetworkKind || &kind == &k8s::kSecretKind) {
    return core::kInUseFinalizer;
  }
  if (&kind == &ipam::kPrefixKind) return core::kPrefixFinalizer;
  return "";
}

}  // namespace berth::apis
