// SPDX-License-Identifier: Apache-2.0
#include "controller/ipam/ipam.h"

#include <utility>

#include "apis/core/well_known.h"
#include "apis/networking/network.h"
#include "base/strings.h"
#include "controller/ipam/owners.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixAllocation;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::networking::Network;

// Parts of one Prefix are taken by one worker at a time: the book is asked and told between two
// awaits. More workers only overlap the writes.
constexpr size_t kWorkers = 4;
constexpr Duration kNotSynced = Duration::Millis(50);

std::optional<client::ObjectKey> ParentNameOf(const meta::Object& allocation) {
  const auto& ref = allocation.as<PrefixAllocation>().spec.prefix_ref;
  if (!ref) return std::nullopt;
  return client::ObjectKey{.namespace_ = allocation.metadata().namespace_, .name = ref->name};
}

}  // namespace

std::string Ipam::QueueKey(const meta::KindInfo& kind, const client::ObjectKey& key) {
  return std::string(kind.kind) + '/' + key.namespace_ + '/' + key.name;
}

Ipam::Ipam(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      events_(loop, client, scheme, "berth-ipam"),
      // An address that cannot be seen is not free.
      prefixes_(
          loop,
          client,
          kPrefixKind,
          [this](const meta::Object* before, const meta::Object* now) { OnPrefix(before, now); },
          nullptr,
          client::Unreadable::kName),
      allocations_(
          loop,
          client,
          kPrefixAllocationKind,
          [this](const meta::Object* before, const meta::Object* now) {
            OnAllocation(before, now);
          },
          nullptr,
          client::Unreadable::kName),
      nics_(
          loop,
          client,
          kNetworkInterfaceKind,
          [this](const meta::Object* before, const meta::Object* now) { OnNic(before, now); },
          nullptr,
          client::Unreadable::kName),
      networks_(
          loop,
          client,
          kNetworkKind,
          [this](const meta::Object* /*before*/, const meta::Object* now) { OnNetwork(now); },
          [](meta::Object& object) {
            object.as<Network>().spec = {};
            object.as<Network>().status = {};
          }),
      runner_(loop, "ipam", *this, kWorkers) {}

rt::Task<Status> Ipam::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(prefixes_.Run());
  tasks.push_back(allocations_.Run());
  tasks.push_back(nics_.Run());
  tasks.push_back(networks_.Run());
  tasks.push_back(LookAtUnread());
  tasks.push_back(events_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

rt::Task<Ipam::Again> Ipam::Reconcile(std::string key) {
  const auto words = Split(key, '/');
  if (words.size() != 3) co_return Internal(Quote(key) + " is no kind, namespace and name");
  client::ObjectKey name{.namespace_ = std::string(words[1]), .name = std::string(words[2])};
  if (words[0] == kNetworkKind.kind) co_return co_await ReconcileNetwork(std::move(name));
  // Nothing is given out before everything that is held is known.
  if (!is_synced()) co_return kNotSynced;
  if (auto why = WhyUnknown(name.namespace_)) {
    co_return co_await Hold(std::move(key), std::move(name), *std::move(why));
  }
  if (words[0] == kPrefixAllocationKind.kind) {
    co_return co_await ReconcileAllocation(std::move(name));
  }
  if (words[0] == kPrefixKind.kind) co_return co_await ReconcilePrefix(std::move(name));
  co_return co_await ReconcileNic(std::move(name));
}

void Ipam::OnNic(const meta::Object* before, const meta::Object* now) {
  if (now != nullptr) runner_.queue().Add(QueueKey(kNetworkInterfaceKind, client::KeyOf(*now)));
  if (now == nullptr) {
    for (const Wanted& one : WantedBy(*before)) {
      refusals_.erase({before->metadata().namespace_, one.name});
    }
  }
  // What was made for it may go when it goes, or needs it no more.
  for (const meta::Object* one : {before, now}) {
    if (one == nullptr) continue;
    const auto made = prefixes_of_nic_.find(one->metadata().uid);
    if (made == prefixes_of_nic_.end()) continue;
    for (const auto& key : made->second) runner_.queue().Add(QueueKey(kPrefixKind, key));
  }
}

void Ipam::NoteRefusal(const client::ObjectKey& prefix, const client::ObjectKey& nic, Refusal why) {
  const auto known = refusals_.find(prefix);
  if (known != refusals_.end() && known->second == why) return;
  refusals_.insert_or_assign(prefix, std::move(why));
  runner_.queue().Add(QueueKey(kNetworkInterfaceKind, nic));
}

void Ipam::OnPrefix(const meta::Object* before, const meta::Object* now) {
  const meta::Object& either = now != nullptr ? *now : *before;
  const client::ObjectKey key = client::KeyOf(either);
  if (now == nullptr || now->as<Prefix>().status.phase == apis::ipam::kPhaseAllocated) {
    refusals_.erase(key);
  }
  const std::string& uid = either.metadata().uid;
  if (before != nullptr && (now == nullptr || before->metadata().uid != uid)) {
    prefix_by_uid_.erase(before->metadata().uid);
    parents_.erase(key);
    const std::string interface = InterfaceOf(*before);
    const auto of_nic = prefixes_of_nic_.find(interface);
    if (of_nic != prefixes_of_nic_.end()) {
      of_nic->second.erase(key);
      if (of_nic->second.empty()) prefixes_of_nic_.erase(of_nic);
    }
    const auto& spec = before->as<Prefix>().spec;
    if (spec.parent_ref) Drop({key.namespace_, spec.parent_ref->name}, before->metadata().uid);
    const auto waits = in_the_way_.find(key);
    if (waits != in_the_way_.end()) {
      runner_.queue().Add(QueueKey(kNetworkInterfaceKind, waits->second));
      in_the_way_.erase(waits);
    }
  }
  WakeWaiting(key.namespace_);
  if (now == nullptr) return;
  prefix_by_uid_[uid] = key;
  runner_.queue().Add(QueueKey(kPrefixKind, key));
  const std::string interface = InterfaceOf(*now);
  if (interface.empty()) return;
  prefixes_of_nic_[interface].insert(key);
  for (const meta::OwnerReference& owner : now->metadata().owner_references) {
    if (owner.uid != interface) continue;
    runner_.queue().Add(QueueKey(kNetworkInterfaceKind, {key.namespace_, owner.name}));
  }
}

void Ipam::OnAllocation(const meta::Object* before, const meta::Object* now) {
  const meta::Object& either = now != nullptr ? *now : *before;
  const client::ObjectKey key = client::KeyOf(either);
  const bool is_gone =
      before != nullptr && (now == nullptr || before->metadata().uid != now->metadata().uid);
  if (is_gone) {
    if (const auto waiting = waiting_.find(key.namespace_); waiting != waiting_.end()) {
      waiting->second.erase(key);
    }
    const auto asked = allocation_of_.find(RequesterOf(*before));
    if (asked != allocation_of_.end() && asked->second == key) allocation_of_.erase(asked);
  }
  if (before != nullptr) {
    if (const auto parent = ParentNameOf(*before)) {
      const auto count = parts_of_.find(*parent);
      if (--count->second == 0) parts_of_.erase(count);
      if (is_gone) Drop(*parent, HolderOf(*before));
      runner_.queue().Add(QueueKey(kPrefixKind, *parent));
    }
  }
  const std::string requester = RequesterOf(either);
  if (const auto asker = prefix_by_uid_.find(requester); asker != prefix_by_uid_.end()) {
    runner_.queue().Add(QueueKey(kPrefixKind, asker->second));
  }
  if (now == nullptr) return;
  if (!requester.empty()) allocation_of_[requester] = key;
  if (const auto parent = ParentNameOf(*now)) {
    ++parts_of_[*parent];
    runner_.queue().Add(QueueKey(kPrefixKind, *parent));
    const auto known = parents_.find(*parent);
    // Given out by somebody else, an earlier leader perhaps.
    const auto& status = now->as<PrefixAllocation>().status;
    if (known != parents_.end() && status.prefix && !known->second.parts.contains(HolderOf(*now))) {
      if (known->second.book.Take(*status.prefix) == RangeBook::Verdict::kTaken) {
        known->second.parts[HolderOf(*now)] = *status.prefix;
      }
    }
  }
  runner_.queue().Add(QueueKey(kPrefixAllocationKind, key));
}

bool Ipam::IsHeld(const client::ObjectKey& parent, const std::string& holder) const {
  if (const auto prefix = prefix_by_uid_.find(holder); prefix != prefix_by_uid_.end()) {
    const meta::Object* object = prefixes_.Find(prefix->second);
    if (object != nullptr && object->metadata().uid == holder) {
      const auto& spec = object->as<Prefix>().spec;
      const bool is_child = spec.parent_ref && spec.parent_ref->name == parent.name && spec.prefix;
      if (is_child && object->as<Prefix>().status.phase == apis::ipam::kPhaseAllocated) return true;
    }
  }
  const auto asked = allocation_of_.find(holder);
  if (asked == allocation_of_.end()) return false;
  const meta::Object* allocation = allocations_.Find(asked->second);
  return allocation != nullptr && ParentNameOf(*allocation) == parent;
}

void Ipam::Drop(const client::ObjectKey& parent, const std::string& holder) {
  const auto known = parents_.find(parent);
  if (known == parents_.end()) return;
  const auto part = known->second.parts.find(holder);
  if (part == known->second.parts.end() || IsHeld(parent, holder)) return;
  known->second.book.Give(part->second);
  known->second.parts.erase(part);
  runner_.queue().Add(QueueKey(kPrefixKind, parent));
  WakeWaiting(parent.namespace_);
}

void Ipam::WakeWaiting(const std::string& namespace_name) {
  const auto waiting = waiting_.find(namespace_name);
  if (waiting == waiting_.end()) return;
  for (const auto& key : std::exchange(waiting->second, {})) {
    runner_.queue().Add(QueueKey(kPrefixAllocationKind, key));
  }
  waiting_.erase(waiting);
}

void Ipam::Fill(Parent& parent, const client::ObjectKey& key) {
  const auto take = [&parent](const std::string& holder, const meta::IpPrefix& part) {
    if (parent.parts.contains(holder)) return;
    if (parent.book.Take(part) == RangeBook::Verdict::kTaken) parent.parts[holder] = part;
  };
  for (const auto& [name, object] : allocations_.objects()) {
    const auto& status = object.as<PrefixAllocation>().status;
    if (status.prefix && ParentNameOf(object) == key) take(HolderOf(object), *status.prefix);
  }
  for (const auto& [name, object] : prefixes_.objects()) {
    const auto& prefix = object.as<Prefix>();
    const bool is_child = name.namespace_ == key.namespace_ && prefix.spec.parent_ref &&
                          prefix.spec.parent_ref->name == key.name && prefix.spec.prefix &&
                          prefix.status.phase == apis::ipam::kPhaseAllocated;
    if (is_child) take(prefix.metadata.uid, *prefix.spec.prefix);
  }
}

Ipam::Parent* Ipam::ParentAt(const client::ObjectKey& key, Refusal& why) {
  const meta::Object* object = prefixes_.Find(key);
  why.reason = "PrefixNotReady";
  if (object == nullptr) {
    why.message = "there is no Prefix " + key.name;
    return nullptr;
  }
  const auto& prefix = object->as<Prefix>();
  if (prefix.metadata.deletion_timestamp) {
    why.message = "Prefix " + key.name + " is being deleted";
    return nullptr;
  }
  if (prefix.status.phase != apis::ipam::kPhaseAllocated || !prefix.spec.prefix) {
    why.message = "Prefix " + key.name + " has no range yet";
    return nullptr;
  }
  const auto known = parents_.find(key);
  if (known != parents_.end() && known->second.uid == prefix.metadata.uid) return &known->second;
  parents_.erase(key);
  Parent fresh{.uid = prefix.metadata.uid,
               .book = RangeBook(*prefix.spec.prefix),
               .parts = {},
               .published = std::nullopt};
  Fill(fresh, key);
  return &parents_.emplace(key, std::move(fresh)).first->second;
}

}  // namespace berth::controller
