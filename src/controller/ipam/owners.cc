// SPDX-License-Identifier: Apache-2.0
#include "controller/ipam/owners.h"

#include "apis/core/well_known.h"
#include "apis/ipam/prefix.h"
#include "apis/networking/network_interface.h"

namespace berth::controller {
namespace {

constexpr std::string_view kVersion = ".ironcore.dev/v1alpha1";
constexpr size_t kUidShown = 8;
constexpr size_t kNameMax = 63;

std::string ApiVersionOf(const meta::KindInfo& kind) {
  return std::string(kind.group) + std::string(kVersion);
}

std::string ControllerOf(const meta::Object& object, const meta::KindInfo& kind) {
  for (const meta::OwnerReference& owner : object.metadata().owner_references) {
    if (owner.controller.value_or(false) && owner.kind == kind.kind &&
        owner.api_version == ApiVersionOf(kind)) {
      return owner.uid;
    }
  }
  return {};
}

}  // namespace

std::string RequesterOf(const meta::Object& allocation) {
  const auto& labels = allocation.metadata().labels;
  const auto label = labels.find(std::string(apis::core::kRequesterUidLabel));
  if (label == labels.end()) return {};
  return ControllerOf(allocation, apis::ipam::kPrefixKind) == label->second ? label->second
                                                                            : std::string();
}

std::string HolderOf(const meta::Object& allocation) {
  const std::string requester = RequesterOf(allocation);
  return requester.empty() ? allocation.metadata().uid : requester;
}

std::string InterfaceOf(const meta::Object& prefix) {
  const auto& annotations = prefix.metadata().annotations;
  const auto manager = annotations.find(std::string(apis::core::kEphemeralManagedByAnnotation));
  if (manager == annotations.end() || manager->second != apis::core::kEphemeralManager) return {};
  return ControllerOf(prefix, apis::networking::kNetworkInterfaceKind);
}

meta::OwnerReference OwnedBy(const meta::Object& owner) {
  meta::OwnerReference reference;
  reference.api_version = ApiVersionOf(owner.kind());
  reference.kind = owner.kind().kind;
  reference.name = owner.metadata().name;
  reference.uid = owner.metadata().uid;
  reference.controller = true;
  reference.block_owner_deletion = true;
  return reference;
}

std::string AllocationNameOf(const meta::ObjectMeta& prefix) {
  const std::string end = '-' + prefix.uid.substr(0, kUidShown);
  return prefix.name.substr(0, kNameMax - end.size()) + end;
}

}  // namespace berth::controller
