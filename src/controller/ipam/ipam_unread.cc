// SPDX-License-Identifier: Apache-2.0
// Namespaces in which something cannot be read: nothing is given out, released or shown there until
// it is removed or mended (ADR 0038).
#include <array>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "controller/ipam/ipam.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::ipam::kPrefixAllocationKind;
using apis::ipam::kPrefixKind;
using apis::ipam::PrefixAllocation;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::NetworkInterface;

bool IsWaiting(const meta::Object& allocation) {
  const auto& phase = allocation.as<PrefixAllocation>().status.phase;
  return !allocation.metadata().deletion_timestamp && phase != apis::ipam::kPhaseAllocated &&
         phase != apis::ipam::kPhaseFailed;
}

bool HasAddresses(const meta::Object& nic) {
  const auto& status = nic.as<NetworkInterface>().status;
  return !status.ips.empty() || !status.prefixes.empty();
}

}  // namespace

std::optional<Ipam::Refusal> Ipam::WhyUnknown(const std::string& namespace_name) const {
  const std::array<std::pair<const client::Informer*, const meta::KindInfo*>, 3> followed = {
      {{&prefixes_, &kPrefixKind},
       {&allocations_, &kPrefixAllocationKind},
       {&nics_, &kNetworkInterfaceKind}}};
  for (const auto& [informer, kind] : followed) {
    if (informer->unread().empty()) continue;  // as always, but once in a while
    const auto first = informer->unread().lower_bound({namespace_name, ""});
    if (first == informer->unread().end() || first->namespace_ != namespace_name) continue;
    return Refusal{.reason = "Unreadable",
                   .message = std::string(kind->plural) + " " +
                              Quote(namespace_name + "/" + first->name) +
                              " cannot be read, so what is free in this namespace is not known; a "
                              "deletion by force removes it"};
  }
  return std::nullopt;
}

rt::Task<Ipam::Again> Ipam::Hold(std::string key, client::ObjectKey name, Refusal why) {
  std::set<std::string>& held = held_[name.namespace_];
  if (held.empty()) LOG_WARNING("namespace {} gets no addresses: {}", name.namespace_, why.message);
  held.insert(key);
  if (key == QueueKey(kPrefixAllocationKind, name)) {
    const meta::Object* allocation = allocations_.Find(name);
    if (allocation != nullptr && IsWaiting(*allocation)) Tell(*allocation, why);
  }
  if (key != QueueKey(kNetworkInterfaceKind, name)) co_return std::optional<Duration>();
  const meta::Object* nic = nics_.Find(name);
  if (nic == nullptr || nic->metadata().deletion_timestamp || HasAddresses(*nic)) {
    co_return std::optional<Duration>();
  }
  CO_TRY_STATUS(co_await SayWhy(*nic, std::move(why)));
  co_return std::optional<Duration>();
}

void Ipam::WakeHeld() {
  for (auto at = held_.begin(); at != held_.end();) {
    if (WhyUnknown(at->first)) {
      ++at;
      continue;
    }
    LOG_INFO("namespace {} gets addresses again", at->first);
    for (const std::string& key : at->second) runner_.queue().Add(key);
    at = held_.erase(at);
  }
}

rt::Task<Status> Ipam::LookAtUnread() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookAtUnreadEvery));
    for (client::Informer* informer : {&prefixes_, &allocations_, &nics_}) {
      CO_TRY_STATUS(co_await informer->LookAtUnread());
    }
    WakeHeld();
  }
}

}  // namespace berth::controller
