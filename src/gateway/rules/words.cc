// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/words.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "gateway/rules/limits.h"

namespace berth::gateway {
namespace {

bool IsResourceName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  };
  return !name.empty() && name.size() <= kWordMax && std::ranges::all_of(name, allowed);
}

// A protobuf map has no order; what is kept must not depend on it.
template <class Map>
std::vector<typename Map::const_iterator> Sorted(const Map& map) {
  std::vector<typename Map::const_iterator> order;
  for (auto at = map.begin(); at != map.end(); ++at) order.push_back(at);
  std::ranges::sort(order, [](const auto& a, const auto& b) { return a->first < b->first; });
  return order;
}

agent::JointOffer JointOf(const fleet::OfferItem& item) {
  agent::JointOffer out;
  out.set_pool_uid(item.pool_uid);
  out.set_kind(std::string(fleet::NameOf(item.kind)));
  out.set_uid(item.uid);
  out.set_placement(item.placement);
  out.set_class_name(item.class_name);
  ToProto(item.resources, *out.mutable_resources());
  return out;
}

fleet::LedgerVersion LedgerOf(const agent::LedgerVersion& version) {
  return {.boot = CleanText(version.boot(), kWordMax), .counter = version.counter()};
}

}  // namespace

std::string CleanText(std::string_view text, size_t max) {
  // Escapes make a text longer: what is far too long is cut before.
  std::string clean = Printable(text.substr(0, max));
  if (clean.size() <= max) return clean;
  clean.resize(max);
  while (!clean.empty() && !IsValidUtf8(clean)) clean.pop_back();
  return clean;
}

fleet::Vector FromProto(const ProtoAmounts& amounts) {
  fleet::Vector vector;
  for (const auto& at : Sorted(amounts)) {
    if (vector.size() >= kDimensionsMax) break;
    if (at->second >= 0 && IsResourceName(at->first)) vector.emplace(at->first, at->second);
  }
  return vector;
}

void ToProto(const fleet::Vector& amounts, ProtoAmounts& out) {
  for (const auto& [name, amount] : amounts) out[name] = amount;
}

agent::Offer ToProto(const fleet::Offer& offer) {
  agent::Offer out;
  out.mutable_id()->set_term(offer.id.term);
  out.mutable_id()->set_number(offer.id.number);
  out.set_pool_uid(offer.item.pool_uid);
  out.set_kind(std::string(fleet::NameOf(offer.item.kind)));
  out.set_uid(offer.item.uid);
  out.set_placement(offer.item.placement);
  out.set_class_name(offer.item.class_name);
  ToProto(offer.item.resources, *out.mutable_resources());
  for (const fleet::OfferItem& item : offer.joint) *out.add_joint() = JointOf(item);
  out.set_hold_ms(static_cast<uint64_t>(offer.hold_ttl.millis()));
  out.set_reservation_uid(offer.reservation_uid);
  return out;
}

fleet::Answer FromProto(const agent::Answer& answer) {
  using Verdict = fleet::Answer::Verdict;
  fleet::Answer out;
  out.id = {.term = answer.id().term(), .number = answer.id().number()};
  switch (answer.verdict()) {
    case agent::Answer::ACCEPTED: out.verdict = Verdict::kAccepted; break;
    case agent::Answer::ALREADY_HERE: out.verdict = Verdict::kAlreadyHere; break;
    default: out.verdict = Verdict::kRejected; break;  // a word that is not known is a no
  }
  out.reason = CleanText(answer.reason(), kWordMax);
  out.message = CleanText(answer.message(), kTextMax);
  out.missing = FromProto(answer.missing());
  out.ledger = LedgerOf(answer.ledger());
  out.placement = answer.placement();
  return out;
}

fleet::PoolFacts FromProto(const std::string& pool_uid,
                           const agent::Facts& facts,
                           const apis::Amounts& limits) {
  using Fence = fleet::PoolFacts::Fence;
  fleet::PoolFacts out;
  out.pool_uid = pool_uid;
  out.ledger = LedgerOf(facts.ledger());
  out.capacity = FromProto(facts.capacity());
  for (auto& [name, amount] : out.capacity) {
    const auto limit = limits.find(name);
    if (limit != limits.end()) amount = std::min(amount, limit->second);
  }
  out.allocated = FromProto(facts.allocated());
  out.held = FromProto(facts.held());
  out.fence = facts.fence_ready() ? Fence::kReady : Fence::kNotReady;
  return out;
}

fleet::Statistics FromProto(const agent::Statistics& statistics, WallTime now) {
  return {.uid = CleanText(statistics.uid(), kWordMax),
          .cpu_cores = statistics.cpu_cores(),
          .memory_bytes = statistics.memory_bytes(),
          .disk_bytes = statistics.disk_bytes(),
          .network_receive_bytes = statistics.network_receive_bytes(),
          .network_send_bytes = statistics.network_send_bytes(),
          .load = statistics.load(),
          .time = now};
}

std::map<std::string, std::string> CleanFacts(
    const google::protobuf::Map<std::string, std::string>& facts) {
  std::map<std::string, std::string> out;
  for (const auto& at : Sorted(facts)) {
    if (out.size() >= kFactsMax) break;
    if (IsResourceName(at->first)) out.emplace(at->first, CleanText(at->second, kWordMax * 2));
  }
  return out;
}

}  // namespace berth::gateway
