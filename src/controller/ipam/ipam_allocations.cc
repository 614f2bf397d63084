// SPDX-License-Identifier: Apache-2.0
// PrefixAllocations: a parent is chosen, a part of it is taken, and the request hears of it.
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/well_known.h"
#include "apis/networking/neighbours.h"
#include "controller/finalizers.h"
#include "controller/ipam/ipam.h"
#include "controller/ipam/owners.h"
#include "meta/label_selector.h"

namespace berth::controller {
namespace {

using apis::ipam::kPhaseAllocated;
using apis::ipam::kPhaseFailed;
using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixAllocation;
using apis::networking::NetworkInterface;

std::string LengthText(int length) { return '/' + std::to_string(length); }

std::string RequestText(const apis::ipam::PrefixAllocationSpec& spec) {
  return spec.prefix ? spec.prefix->ToString() : LengthText(spec.prefix_length);
}

// There is room, of no use to whoever asks. REQUIRES: nothing was found.
bool HasUnsuited(const RangeBook& book, const apis::ipam::PrefixAllocationSpec& spec) {
  const auto largest = book.LargestFree();
  return !spec.prefix && largest && *largest <= spec.prefix_length;
}

std::string FreeText(const RangeBook& book, const apis::ipam::PrefixAllocationSpec& spec) {
  const auto largest = book.LargestFree();
  if (!largest) return "nothing of it is free";
  if (HasUnsuited(book, spec)) return "only first and last addresses of networks are left";
  return "the largest free range is a " + LengthText(*largest);
}

std::string WholeText(const std::string& name, const RangeBook& book) {
  return "Prefix " + name + " (" + book.whole().ToString() + ")";
}

// All but those that its guest takes for the network itself and for everybody.
RangeBook::Suits SuitsGuestOf(const NetworkInterface& nic) {
  namespace networking = apis::networking;
  std::optional<int> told;
  const auto said = nic.spec.attributes.find(std::string(networking::kPrefixLengthAttribute));
  if (said != nic.spec.attributes.end()) {
    // The host refuses the interface for a wrong one.
    const Result<int> length = networking::ParsePrefixLength(said->second);
    if (length.ok()) told = *length;
  }
  return [told](const meta::IpAddress& address) {
    return !networking::IsOfTheWire(address, told ? *told : networking::UsualPrefixLength(address));
  };
}

// Whether there can ever be such a part of the whole.
bool IsPossible(const apis::ipam::PrefixAllocationSpec& spec, const meta::IpPrefix& whole) {
  if (spec.prefix) return whole.Contains(spec.prefix->Masked());
  return meta::IpFamilyName(whole.family()) == spec.ip_family &&
         spec.prefix_length >= whole.length();
}

}  // namespace

rt::Task<Ipam::Again> Ipam::ReconcileAllocation(client::ObjectKey key) {
  const meta::Object* found = allocations_.Find(key);
  if (found == nullptr) co_return std::optional<Duration>();
  meta::Object object = *found;
  const std::string uid = object.metadata().uid;
  const auto phase = object.as<PrefixAllocation>().status.phase;
  const bool is_over =
      object.metadata().deletion_timestamp || phase == kPhaseAllocated || phase == kPhaseFailed;
  if (is_over) co_return std::optional<Duration>();
  if (!object.as<PrefixAllocation>().spec.prefix_ref) {
    const auto chosen = ChooseParent(object);
    if (const auto* why = std::get_if<Refusal>(&chosen)) {
      Wait(object, *why);
      co_return std::optional<Duration>();
    }
    CO_TRY(object, co_await NameParent(std::move(object), std::get<std::string>(chosen)));
  }
  const client::ObjectKey parent_key{.namespace_ = key.namespace_,
                                     .name = object.as<PrefixAllocation>().spec.prefix_ref->name};
  Refusal why;
  const Parent* parent = ParentAt(parent_key, why);
  if (parent == nullptr) {
    Wait(object, why);
    co_return std::optional<Duration>();
  }
  // Before anything of it is held: it must not go then.
  const std::string parent_uid = parent->uid;
  std::function<bool(meta::ObjectMeta&)> protect = [](meta::ObjectMeta& metadata) {
    if (metadata.deletion_timestamp || HasFinalizer(metadata, apis::core::kPrefixFinalizer)) {
      return false;
    }
    metadata.finalizers.emplace_back(apis::core::kPrefixFinalizer);
    return true;
  };
  const meta::Object* parent_object = prefixes_.Find(parent_key);
  if (!HasFinalizer(parent_object->metadata(), apis::core::kPrefixFinalizer)) {
    CO_TRY_STATUS(
        co_await EditMetadata(client_, kPrefixKind, parent_key, parent_uid, std::move(protect)));
  }
  // What was awaited may have taken long.
  found = allocations_.Find(key);
  if (found == nullptr || found->metadata().uid != uid) co_return std::optional<Duration>();
  if (auto unknown = WhyUnknown(key.namespace_)) {
    co_return co_await Hold(QueueKey(kPrefixAllocationKind, key), key, *std::move(unknown));
  }
  const auto part = TakePart(parent_key, object);
  if (const auto* refusal = std::get_if<Refusal>(&part)) {
    if (refusal->is_final) CO_TRY_STATUS(co_await Fail(std::move(object), *refusal));
    if (!refusal->is_final) Wait(object, *refusal);
    co_return std::optional<Duration>();
  }
  CO_TRY_STATUS(co_await Grant(std::move(object), std::get<meta::IpPrefix>(part)));
  co_return std::optional<Duration>();
}

std::variant<std::string, Ipam::Refusal> Ipam::ChooseParent(const meta::Object& allocation) {
  const auto& spec = allocation.as<PrefixAllocation>().spec;
  const std::string requester = RequesterOf(allocation);
  const RangeBook::Suits suits = SuitsOf(allocation);
  const auto selector = meta::Selector::From(*spec.prefix_selector);
  std::optional<int> best;
  std::string name;
  size_t matching = 0;
  std::string nearest;
  for (const auto& [key, object] : prefixes_.objects()) {
    if (key.namespace_ != allocation.metadata().namespace_) continue;
    if (!selector.ok() || !selector->Matches(object.metadata().labels)) continue;
    if (object.as<Prefix>().spec.ip_family != spec.ip_family) continue;
    if (object.metadata().uid == requester) continue;  // nothing is a part of itself
    ++matching;
    Refusal why;
    const Parent* parent = ParentAt(key, why);
    if (parent == nullptr) {
      nearest = why.message;
      continue;
    }
    const RangeBook& book = parent->book;
    const std::optional<int> block = !spec.prefix ? book.SmallestFor(spec.prefix_length, suits)
                                     : book.IsFree(*spec.prefix)
                                         ? std::optional<int>(book.whole().length())
                                         : std::nullopt;
    if (!block) {
      nearest = "in " + WholeText(key.name, book) + ' ' + FreeText(book, spec);
      continue;
    }
    if (best && *best >= *block) continue;  // the smallest block that is large enough
    best = block;
    name = key.name;
  }
  if (best) return name;
  std::string message =
      "no Prefix of " + std::to_string(matching) + " that match has room for " + RequestText(spec);
  if (!nearest.empty()) message += "; " + nearest;
  return Refusal{.reason = "NoSuitablePrefix", .message = std::move(message)};
}

std::variant<meta::IpPrefix, Ipam::Refusal> Ipam::TakePart(const client::ObjectKey& parent_key,
                                                           const meta::Object& allocation) {
  Refusal why;
  Parent* parent = ParentAt(parent_key, why);
  if (parent == nullptr) return why;
  const std::string holder = HolderOf(allocation);
  // Taken before, and the answer was lost.
  if (const auto taken = parent->parts.find(holder); taken != parent->parts.end()) {
    return taken->second;
  }
  const auto& spec = allocation.as<PrefixAllocation>().spec;
  const std::string whole = WholeText(parent_key.name, parent->book);
  if (!IsPossible(spec, parent->book.whole())) {
    return Refusal{.reason = "PrefixOutside",
                   .message = "an " + spec.ip_family + " range " + RequestText(spec) +
                              " is no part of " + whole,
                   .is_final = true};
  }
  if (spec.prefix) {
    if (parent->book.Take(*spec.prefix) != RangeBook::Verdict::kTaken) {
      return Refusal{.reason = "PrefixExhausted",
                     .message = spec.prefix->ToString() + " of " + whole + " is held by others"};
    }
    return parent->parts[holder] = *spec.prefix;
  }
  const auto part = parent->book.TakeAny(spec.prefix_length, SuitsOf(allocation));
  if (!part) {
    const std::string what =
        RequestText(spec) + (HasUnsuited(parent->book, spec) ? " that a guest can use" : "");
    return Refusal{.reason = "PrefixExhausted",
                   .message = whole + " has no free " + what + ": " + FreeText(parent->book, spec)};
  }
  return parent->parts[holder] = *part;
}

rt::Task<Result<meta::Object>> Ipam::NameParent(meta::Object object, std::string parent) {
  object.as<PrefixAllocation>().spec.prefix_ref.emplace().name = std::move(parent);
  const client::WriteOptions options;
  co_return co_await client_.Update(std::move(object), options);
}

rt::Task<Status> Ipam::Grant(meta::Object object, meta::IpPrefix part) {
  auto& status = object.as<PrefixAllocation>().status;
  status.prefix = part;
  status.phase = kPhaseAllocated;
  status.last_phase_transition_time = loop_.WallNow();
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const auto written = co_await client_.Update(std::move(object), options);
  // Gone: whoever hears of that gives the part back.
  if (written.status().Is(Reason::kNotFound)) co_return OkStatus();
  co_return written.status();
}

rt::Task<Status> Ipam::Fail(meta::Object object, Refusal why) {
  Tell(object, why);
  auto& status = object.as<PrefixAllocation>().status;
  status.phase = kPhaseFailed;
  status.last_phase_transition_time = loop_.WallNow();
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const auto written = co_await client_.Update(std::move(object), options);
  if (written.status().Is(Reason::kNotFound)) co_return OkStatus();
  co_return written.status();
}

void Ipam::Wait(const meta::Object& allocation, const Refusal& why) {
  waiting_[allocation.metadata().namespace_].insert(client::KeyOf(allocation));
  Tell(allocation, why);
}

const meta::Object* Ipam::AskerOf(const meta::Object& allocation) const {
  const auto asker = prefix_by_uid_.find(RequesterOf(allocation));
  return asker == prefix_by_uid_.end() ? nullptr : prefixes_.Find(asker->second);
}

const meta::Object* Ipam::NicOf(const meta::Object& prefix) const {
  const std::string interface = InterfaceOf(prefix);
  for (const meta::OwnerReference& owner : prefix.metadata().owner_references) {
    if (interface.empty() || owner.uid != interface) continue;
    const meta::Object* nic = nics_.Find({prefix.metadata().namespace_, owner.name});
    return nic != nullptr && nic->metadata().uid == interface ? nic : nullptr;
  }
  return nullptr;
}

// A range that somebody asks for himself is his to divide, and an address that is named is wanted
// as it is: only what is chosen for a guest has to be of use to it.
RangeBook::Suits Ipam::SuitsOf(const meta::Object& allocation) const {
  const meta::Object* prefix = AskerOf(allocation);
  const meta::Object* nic = prefix == nullptr ? nullptr : NicOf(*prefix);
  if (nic == nullptr || !IsForAddress(*nic, *prefix)) return {};
  return SuitsGuestOf(nic->as<NetworkInterface>());
}

// The machine that waits for the interface, if there is one.
std::optional<client::EventSubject> Ipam::MachineOf(const meta::Object& nic) {
  client::EventSubject machine;
  machine.kind = &apis::compute::kMachineKind;
  machine.key.namespace_ = nic.metadata().namespace_;
  if (const auto& claim = nic.as<NetworkInterface>().spec.machine_ref;
      claim && !claim->uid.empty()) {
    machine.key.name = claim->name;
    machine.uid = claim->uid;
    return machine;
  }
  for (const meta::OwnerReference& owner : nic.metadata().owner_references) {
    if (owner.kind != apis::compute::kMachineKind.kind) continue;
    machine.key.name = owner.name;
    machine.uid = owner.uid;
    return machine;
  }
  return std::nullopt;
}

// People look at what they made themselves: everybody in the chain is told.
void Ipam::Tell(const meta::Object& allocation, const Refusal& why) {
  const auto tell = [&](const client::EventSubject& subject) {
    events_.Record(subject, client::EventType::kWarning, why.reason, "Allocating", why.message);
  };
  const auto say = [&](const meta::Object& object) { tell(client::EventSubject::Of(object)); };
  say(allocation);
  const meta::Object* prefix = AskerOf(allocation);
  if (prefix == nullptr) return;
  say(*prefix);
  const meta::Object* nic = NicOf(*prefix);
  if (nic == nullptr) return;
  say(*nic);
  NoteRefusal(client::KeyOf(*prefix), client::KeyOf(*nic), why);
  if (const auto machine = MachineOf(*nic)) tell(*machine);
}

}  // namespace berth::controller
