// SPDX-License-Identifier: Apache-2.0
// Prefixes: a root has its range, a child asks for one, and a parent shows what is held of it.
#include <algorithm>
#include <string>
#include <utility>

#include "apis/core/well_known.h"
#include "controller/finalizers.h"
#include "controller/ipam/ipam.h"
#include "controller/ipam/owners.h"

namespace berth::controller {
namespace {

using apis::ipam::kPhaseAllocated;
using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixAllocation;

bool IsRoot(const apis::ipam::PrefixSpec& spec) {
  return !spec.parent_ref && !spec.parent_selector;
}

// Only the garbage collector waits for it any more.
bool WaitsForPartsOnly(const meta::ObjectMeta& owner) {
  return std::ranges::all_of(owner.finalizers, [](const std::string& finalizer) {
    return finalizer == "foregroundDeletion" || finalizer == "orphan";
  });
}

meta::Object AllocationFor(const meta::Object& object) {
  const auto& spec = object.as<Prefix>().spec;
  PrefixAllocation allocation;
  allocation.metadata.namespace_ = object.metadata().namespace_;
  allocation.metadata.name = AllocationNameOf(object.metadata());
  allocation.metadata.labels[std::string(apis::core::kRequesterUidLabel)] = object.metadata().uid;
  allocation.metadata.owner_references.push_back(OwnedBy(object));
  allocation.spec.ip_family = spec.ip_family;
  allocation.spec.prefix = spec.prefix;
  if (!spec.prefix) allocation.spec.prefix_length = spec.prefix_length;
  allocation.spec.prefix_ref = spec.parent_ref;
  allocation.spec.prefix_selector = spec.parent_selector;
  return meta::Object::Of(kPrefixAllocationKind, std::move(allocation));
}

}  // namespace

rt::Task<Ipam::Again> Ipam::ReconcilePrefix(client::ObjectKey key) {
  const meta::Object* found = prefixes_.Find(key);
  if (found == nullptr) co_return std::optional<Duration>();
  meta::Object object = *found;
  if (object.metadata().deletion_timestamp) co_return co_await Release(std::move(object));
  if (object.as<Prefix>().status.phase != kPhaseAllocated) {
    co_return co_await Obtain(std::move(object));
  }
  co_return co_await Publish(std::move(object));
}

bool Ipam::MayGo(const meta::Object& prefix) const {
  const client::ObjectKey key = client::KeyOf(prefix);
  if (parts_of_.contains(key)) return false;
  const auto known = parents_.find(key);
  if (known != parents_.end() && !known->second.parts.empty()) return false;
  const std::string interface = InterfaceOf(prefix);
  for (const meta::OwnerReference& owner : prefix.metadata().owner_references) {
    if (interface.empty() || owner.uid != interface) continue;
    const meta::Object* nic = nics_.Find({key.namespace_, owner.name});
    if (nic == nullptr || nic->metadata().uid != interface) return true;
    if (nic->metadata().deletion_timestamp) return WaitsForPartsOnly(nic->metadata());
    return !IsNeeded(*nic, prefix);
  }
  return true;
}

// Whoever held something of it, or needed it, tells when that is over: nothing is waited for here.
rt::Task<Ipam::Again> Ipam::Release(meta::Object object) {
  if (!HasFinalizer(object.metadata(), apis::core::kPrefixFinalizer) || !MayGo(object)) {
    co_return std::optional<Duration>();
  }
  const client::ObjectKey key = client::KeyOf(object);
  const std::string uid = object.metadata().uid;
  const std::string finalizer(apis::core::kPrefixFinalizer);
  CO_TRY_STATUS(co_await RemoveFinalizer(client_, kPrefixKind, key, uid, finalizer));
  co_return std::optional<Duration>();
}

rt::Task<Ipam::Again> Ipam::Obtain(meta::Object object) {
  const client::WriteOptions options;
  client::WriteOptions status_options;
  status_options.subresource = client::Subresource::kStatus;
  if (!IsRoot(object.as<Prefix>().spec)) {
    const auto asked = allocation_of_.find(object.metadata().uid);
    const meta::Object* allocation =
        asked == allocation_of_.end() ? nullptr : allocations_.Find(asked->second);
    if (allocation == nullptr) {
      CO_TRY_STATUS(co_await Ask(std::move(object)));
      co_return std::optional<Duration>();
    }
    const auto granted = allocation->as<PrefixAllocation>();
    if (granted.status.phase != kPhaseAllocated || !granted.status.prefix) {
      co_return std::optional<Duration>();  // it says itself what it waits for
    }
    auto& spec = object.as<Prefix>().spec;
    if (!spec.prefix || !spec.parent_ref) {
      spec.prefix = granted.status.prefix;
      spec.parent_ref = granted.spec.prefix_ref;
      CO_TRY(object, co_await client_.Update(std::move(object), options));
    }
  }
  auto& status = object.as<Prefix>().status;
  status.phase = kPhaseAllocated;
  status.last_phase_transition_time = loop_.WallNow();
  CO_TRY_STATUS((co_await client_.Update(std::move(object), status_options)).status());
  co_return std::optional<Duration>();
}

rt::Task<Status> Ipam::Ask(meta::Object object) {
  meta::Object wanted = AllocationFor(object);
  const client::ObjectKey key = client::KeyOf(wanted);
  const std::string uid = object.metadata().uid;
  const client::WriteOptions options;
  const auto made = co_await client_.Create(std::move(wanted), options);
  if (made.ok()) co_return OkStatus();
  if (!made.status().Is(Reason::kAlreadyExists)) {
    events_.Record(client::EventSubject::Of(object),
                   client::EventType::kWarning,
                   "AllocationNotMade",
                   "Allocating",
                   "PrefixAllocation " + key.name + ": " + std::string(made.status().message()));
    co_return made.status();
  }
  const auto there = co_await client_.Get(kPrefixAllocationKind, key);
  CO_TRY_STATUS(there);
  if (RequesterOf(*there) == uid) co_return OkStatus();  // it will be heard of
  events_.Record(client::EventSubject::Of(object),
                 client::EventType::kWarning,
                 "AllocationNotMade",
                 "Allocating",
                 "PrefixAllocation " + key.name + " exists and is not of this Prefix");
  co_return Conflict("PrefixAllocation " + key.name + " is not ours");
}

rt::Task<Ipam::Again> Ipam::Publish(meta::Object object) {
  const client::ObjectKey key = client::KeyOf(object);
  Refusal why;
  // Nobody asked for a part, and nobody has one: there is no book to be made.
  if (!parts_of_.contains(key) && object.as<Prefix>().status.used.empty() &&
      !parents_.contains(key)) {
    co_return std::optional<Duration>();
  }
  Parent* parent = ParentAt(key, why);
  if (parent == nullptr) co_return std::optional<Duration>();
  std::vector<meta::IpPrefix> used = parent->book.HeldMerged();
  if (used == object.as<Prefix>().status.used) co_return std::optional<Duration>();
  const Time now = loop_.Now();
  if (parent->published && now < *parent->published + kPublishEvery) {
    co_return *parent->published + kPublishEvery - now;
  }
  parent->published = now;
  object.as<Prefix>().status.used = std::move(used);
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  CO_TRY_STATUS((co_await client_.Update(std::move(object), options)).status());
  co_return std::optional<Duration>();
}

}  // namespace berth::controller
