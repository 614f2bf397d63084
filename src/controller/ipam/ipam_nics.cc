// SPDX-License-Identifier: Apache-2.0
// NetworkInterfaces: Prefixes are made for the addresses that are not given, and what they get is
// shown in the interface's status.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "apis/core/well_known.h"
#include "controller/ipam/ipam.h"
#include "controller/ipam/owners.h"

namespace berth::controller {
namespace {

using apis::ipam::kPrefixKind;
using apis::ipam::Prefix;
using apis::ipam::PrefixTemplateSpec;
using apis::networking::NetworkInterface;
using apis::networking::NetworkInterfaceCondition;

// A quota may have room again, and nobody tells.
constexpr Duration kRefusedPause = Duration::Seconds(30);

std::string IpName(const std::string& nic, size_t i) { return nic + '-' + std::to_string(i); }
std::string RoutedName(const std::string& nic, size_t i) {
  return nic + "-pf-" + std::to_string(i);
}

template <class Sources, class Visit>
void ForEachTemplate(const Sources& sources, const Visit& visit) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].ephemeral && sources[i].ephemeral->prefix_template) {
      visit(i, *sources[i].ephemeral->prefix_template);
    }
  }
}

meta::Object PrefixFor(const meta::Object& nic,
                       const std::string& name,
                       const PrefixTemplateSpec& from) {
  Prefix prefix;
  prefix.metadata.namespace_ = nic.metadata().namespace_;
  prefix.metadata.name = name;
  prefix.metadata.labels = from.metadata.labels;
  prefix.metadata.annotations = from.metadata.annotations;
  prefix.metadata.annotations[std::string(apis::core::kEphemeralManagedByAnnotation)] =
      apis::core::kEphemeralManager;
  // The address must not be given to others as long as the interface has it.
  prefix.metadata.finalizers.emplace_back(apis::core::kPrefixFinalizer);
  prefix.metadata.owner_references.push_back(OwnedBy(nic));
  prefix.spec = from.spec;
  return meta::Object::Of(kPrefixKind, std::move(prefix));
}

}  // namespace

std::vector<Ipam::Wanted> Ipam::WantedBy(const meta::Object& nic) {
  const auto& spec = nic.as<NetworkInterface>().spec;
  const std::string& name = nic.metadata().name;
  std::vector<Wanted> wanted;
  ForEachTemplate(spec.ips, [&](size_t i, const PrefixTemplateSpec& from) {
    wanted.push_back({IpName(name, i), "spec.ips[" + std::to_string(i) + "]", from});
  });
  ForEachTemplate(spec.prefixes, [&](size_t i, const PrefixTemplateSpec& from) {
    wanted.push_back({RoutedName(name, i), "spec.prefixes[" + std::to_string(i) + "]", from});
  });
  return wanted;
}

bool Ipam::IsForAddress(const meta::Object& nic, const meta::Object& prefix) {
  const size_t addresses = nic.as<NetworkInterface>().spec.ips.size();
  for (size_t i = 0; i < addresses; ++i) {
    if (prefix.metadata().name == IpName(nic.metadata().name, i)) return true;
  }
  return false;
}

bool Ipam::IsNeeded(const meta::Object& nic, const meta::Object& prefix) {
  const auto is_it = [&prefix](const Wanted& one) { return one.name == prefix.metadata().name; };
  if (std::ranges::any_of(WantedBy(nic), is_it)) return true;
  // Not asked for any more, and in use until the interface shows others.
  const auto& range = prefix.as<Prefix>().spec.prefix;
  if (!range) return false;
  const auto& status = nic.as<NetworkInterface>().status;
  return std::ranges::find(status.prefixes, *range) != status.prefixes.end() ||
         (range->is_single_ip() &&
          std::ranges::find(status.ips, range->address()) != status.ips.end());
}

rt::Task<Ipam::Again> Ipam::ReconcileNic(client::ObjectKey key) {
  const meta::Object* found = nics_.Find(key);
  if (found == nullptr || found->metadata().deletion_timestamp) {
    co_return std::optional<Duration>();
  }
  const meta::Object object = *found;
  const std::vector<Wanted> wanted = WantedBy(object);
  std::set<std::string> names;
  std::optional<Duration> again;
  for (const Wanted& one : wanted) {
    names.insert(one.name);
    const meta::Object* there = prefixes_.Find({key.namespace_, one.name});
    if (there != nullptr && InterfaceOf(*there) == object.metadata().uid) continue;
    const Status made = co_await MakePrefix(object, one);
    if (made.Is(Reason::kForbidden) || made.Is(Reason::kInvalid)) {
      again = kRefusedPause;  // said on the interface
    } else {
      CO_TRY_STATUS(made);
    }
  }
  CO_TRY_STATUS(co_await PrunePrefixes(object, std::move(names)));
  CO_TRY_STATUS(co_await ShowRefusal(object, wanted));
  CO_TRY_STATUS(co_await ShowAddresses(object));
  co_return again;
}

rt::Task<Status> Ipam::MakePrefix(meta::Object nic, Wanted wanted) {
  const client::ObjectKey key{.namespace_ = nic.metadata().namespace_, .name = wanted.name};
  const client::WriteOptions options;
  const auto made = co_await client_.Create(PrefixFor(nic, wanted.name, wanted.from), options);
  if (made.ok()) co_return OkStatus();
  std::string why(made.status().message());
  Status status = made.status();
  if (made.status().Is(Reason::kAlreadyExists)) {
    const auto there = co_await client_.Get(kPrefixKind, key);
    if (there.status().Is(Reason::kNotFound)) co_return Conflict(wanted.name + " has just gone");
    CO_TRY_STATUS(there.status());
    if (InterfaceOf(*there) == nic.metadata().uid) co_return OkStatus();
    in_the_way_[key] = client::KeyOf(nic);
    why =
        "exists and is not of this interface; it is left alone, and the interface waits until it "
        "is gone";
    status = Forbidden("Prefix " + wanted.name + " is not ours");
  }
  why = wanted.field + ": Prefix " + wanted.name + ": " + why;
  constexpr std::string_view kReason = "PrefixNotReady";
  events_.Record(client::EventSubject::Of(nic),
                 client::EventType::kWarning,
                 std::string(kReason),
                 "MakingParts",
                 why);
  // What is shown of it is shown by whoever called this.
  const bool is_lasting = status.Is(Reason::kForbidden) || status.Is(Reason::kInvalid);
  if (is_lasting) refusals_[key] = {.reason = std::string(kReason), .message = std::move(why)};
  co_return status;
}

rt::Task<Status> Ipam::PrunePrefixes(meta::Object nic, std::set<std::string> wanted) {
  const auto made = prefixes_of_nic_.find(nic.metadata().uid);
  if (made == prefixes_of_nic_.end()) co_return OkStatus();
  const std::set<client::ObjectKey> keys = made->second;
  for (const client::ObjectKey& key : keys) {
    const meta::Object* prefix = prefixes_.Find(key);
    if (prefix == nullptr || wanted.contains(key.name)) continue;
    const std::string uid = prefix->metadata().uid;
    if (!prefix->metadata().deletion_timestamp) {
      client::DeleteOptions options;
      options.uid = uid;
      const Status deleted = co_await client_.Delete(kPrefixKind, key, options);
      if (!deleted.ok() && !deleted.Is(Reason::kNotFound) && !deleted.Is(Reason::kConflict)) {
        co_return deleted;
      }
    }
  }
  co_return OkStatus();
}

std::optional<meta::IpPrefix> Ipam::RangeOf(const meta::Object& nic,
                                            const std::string& name) const {
  const meta::Object* object = prefixes_.Find({nic.metadata().namespace_, name});
  if (object == nullptr || InterfaceOf(*object) != nic.metadata().uid) return std::nullopt;
  const auto& prefix = object->as<Prefix>();
  if (prefix.status.phase != apis::ipam::kPhaseAllocated) return std::nullopt;
  return prefix.spec.prefix;
}

rt::Task<Status> Ipam::ShowRefusal(meta::Object object, std::vector<Wanted> wanted) {
  const Refusal* why = nullptr;
  for (const Wanted& one : wanted) {
    const auto found = refusals_.find({object.metadata().namespace_, one.name});
    if (found == refusals_.end()) continue;
    why = &found->second;
    break;
  }
  // What was said before stays true until it has them.
  if (why == nullptr) co_return OkStatus();
  co_return co_await SayWhy(std::move(object), *why);
}

rt::Task<Status> Ipam::SayWhy(meta::Object object, Refusal why) {
  constexpr std::string_view kFalse = "False";
  auto& conditions = object.as<NetworkInterface>().status.conditions;
  auto at = std::ranges::find(
      conditions, apis::networking::kAddressesReady, &NetworkInterfaceCondition::type);
  if (at == conditions.end()) {
    conditions.push_back({.type = std::string(apis::networking::kAddressesReady),
                          .status = std::string(kFalse),
                          .reason = {},
                          .message = {},
                          .last_transition_time = loop_.WallNow()});
    at = std::prev(conditions.end());
  }
  if (at->reason == why.reason && at->message == why.message) co_return OkStatus();
  at->reason = std::move(why.reason);
  at->message = std::move(why.message);
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const auto written = co_await client_.Update(std::move(object), options);
  if (written.status().Is(Reason::kNotFound)) co_return OkStatus();
  co_return written.status();
}

rt::Task<Status> Ipam::ShowAddresses(meta::Object object) {
  const std::string name = object.metadata().name;
  auto& nic = object.as<NetworkInterface>();
  std::vector<meta::IpAddress> ips;
  for (size_t i = 0; i < nic.spec.ips.size(); ++i) {
    const auto range = nic.spec.ips[i].value ? std::nullopt : RangeOf(object, IpName(name, i));
    if (!nic.spec.ips[i].value && !range) co_return OkStatus();  // heard of when it is there
    ips.push_back(range ? range->address() : *nic.spec.ips[i].value);
  }
  std::vector<meta::IpPrefix> prefixes;
  for (size_t i = 0; i < nic.spec.prefixes.size(); ++i) {
    const auto range = nic.spec.prefixes[i].value ? nic.spec.prefixes[i].value
                                                  : RangeOf(object, RoutedName(name, i));
    if (!range) co_return OkStatus();
    prefixes.push_back(*range);
  }
  constexpr std::string_view kAvailable = "Available";
  const size_t cleared = std::erase_if(nic.status.conditions, [](const auto& condition) {
    return condition.type == apis::networking::kAddressesReady;
  });
  const bool is_shown = nic.status.ips == ips && nic.status.prefixes == prefixes &&
                        nic.status.state == kAvailable && cleared == 0;
  if (is_shown) co_return OkStatus();
  nic.status.ips = std::move(ips);
  nic.status.prefixes = std::move(prefixes);
  if (nic.status.state != kAvailable) {
    nic.status.state = kAvailable;
    nic.status.last_state_transition_time = loop_.WallNow();
  }
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const auto written = co_await client_.Update(std::move(object), options);
  if (written.status().Is(Reason::kNotFound)) co_return OkStatus();
  co_return written.status();
}

}  // namespace berth::controller
