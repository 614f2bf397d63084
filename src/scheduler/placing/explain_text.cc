// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/explain_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "apis/core/resources.h"
#include "apis/core/well_known.h"
#include "apis/placement.h"
#include "meta/quantity.h"

namespace berth::scheduler {
namespace {

// More refusals than this are summed up, and so are more volumes.
constexpr size_t kRefusalsShown = 4;
constexpr size_t kTiesShown = 4;
// Each is a sentence of its own.
constexpr size_t kJointShown = 3;

std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

std::string DescribeScarce(const std::map<std::string, int64_t>& scarce) {
  std::vector<std::string> parts;
  for (const auto& [resource, count] : scarce) {
    parts.push_back(std::to_string(count) + ' ' + resource);
  }
  return Join(parts, ", ");
}

// "which only host alpha reaches"; "" if everybody does.
std::string DescribeReach(const PoolSpec& pool) {
  const auto from = [](std::string_view kind, const std::string& name) {
    return name.empty() ? "which no machine reaches: it names no " + std::string(kind)
                        : "which only " + std::string(kind) + ' ' + name + " reaches";
  };
  const auto label = [&](std::string_view key) {
    const auto found = pool.labels.find(std::string(key));
    return found == pool.labels.end() ? std::string() : found->second;
  };
  switch (pool.reach) {
    case Reach::kAny: return "";
    case Reach::kHost: return from("host", pool.host);
    case Reach::kZone: return from("zone", label(apis::core::kZoneLabel));
    case Reach::kRegion: return from("region", label(apis::core::kRegionLabel));
  }
  return "";
}

using Failures = std::vector<std::pair<int64_t, Rule>>;

// Most pools first.
Failures FailuresOf(const Explanation& explanation) {
  Failures failed;
  for (size_t i = 0; i < kRules; ++i) {
    if (explanation.failed[i] > 0) failed.emplace_back(explanation.failed[i], static_cast<Rule>(i));
  }
  std::sort(failed.begin(), failed.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return failed;
}

// "none of 5 pools takes it: 3 have too little room (2 cpu, 1 memory), 2 are cordoned".
std::string DescribeRules(const Explanation& explanation, std::string_view pools) {
  std::vector<std::string> parts;
  for (const auto& [count, rule] : FailuresOf(explanation)) {
    std::string part = std::to_string(count) + ' ' + std::string(RuleText(rule));
    if (rule == Rule::kRoom && !explanation.scarce.empty()) {
      part += " (" + DescribeScarce(explanation.scarce) + ')';
    }
    parts.push_back(std::move(part));
  }
  std::string text =
      "none of " + std::to_string(explanation.pools) + ' ' + std::string(pools) + " takes it";
  return parts.empty() ? text : text + ": " + Join(parts, ", ");
}

std::string DescribeNearest(const Explanation& explanation, const PoolDirectory& pools) {
  const std::string miss =
      explanation.nearest ? DescribeMiss(*explanation.nearest, pools) : std::string();
  return miss.empty() ? miss : "; nearest is " + miss;
}

// Joint volumes that hold the machine up: those that no pool would take, which no other place of
// the machine helps; without any, all, because it is reach or each other that they lack.
std::vector<size_t> BlockingOf(const Explanation& explanation) {
  std::vector<size_t> blocking, all;
  for (size_t i = 0; i < explanation.joint.size(); ++i) {
    all.push_back(i);
    if (explanation.joint[i].passed == 0) blocking.push_back(i);
  }
  return blocking.empty() ? all : blocking;
}

// What is said of them, and what makes it another reason.
struct JointText {
  std::string message;
  std::string reasons;
};

JointText DescribeJoint(const Explanation& explanation,
                        const std::vector<std::string>& names,
                        const PoolDirectory& pools) {
  JointText text;
  const std::vector<size_t> blocking = BlockingOf(explanation);
  for (size_t n = 0; n < blocking.size(); ++n) {
    if (n == kJointShown) {
      const size_t left = blocking.size() - n;
      const std::string more =
          "; and " + std::to_string(left) + (left == 1 ? " more volume" : " more volumes");
      text.message += more;
      text.reasons += more;
      break;
    }
    const size_t i = blocking[n];
    const Explanation& volume = explanation.joint[i];
    const std::string name = "; volume " + (i < names.size() ? names[i] : std::to_string(i)) + ": ";
    text.message += name + DescribeVolume(volume, pools);
    std::set<std::string> rules;
    for (const auto& [count, rule] : FailuresOf(volume)) rules.emplace(RuleName(rule));
    text.reasons += name + Join(std::vector<std::string>(rules.begin(), rules.end()), ",");
  }
  return text;
}

}  // namespace

std::string DescribeMiss(const NearMiss& miss, const PoolDirectory& pools) {
  const PoolEntry* pool = pools.Find(miss.pool);
  if (pool == nullptr) return "";
  const std::string& name = pool->pool.spec.name;
  if (!miss.missing.empty()) return name + ", which lacks " + DescribeAmounts(miss.missing);
  return name + " (" + std::string(RuleName(miss.rule)) + ')';
}

std::string DescribeVolume(const Explanation& volume, const PoolDirectory& pools) {
  if (volume.pools == 0) return "there is no volume pool";
  if (volume.passed == 0) {
    return DescribeRules(volume, "volume pools") + DescribeNearest(volume, pools);
  }
  std::vector<std::string> parts;
  for (const Candidate& candidate : volume.ranked) {
    const PoolEntry* pool = pools.Find(candidate.pool);
    if (pool == nullptr) continue;
    const std::string reach = DescribeReach(pool->pool.spec);
    parts.push_back(pool->pool.spec.name + (reach.empty() ? reach : ", " + reach));
  }
  if (volume.passed > static_cast<int64_t>(parts.size())) parts.emplace_back("and others");
  return std::to_string(volume.passed) + " of " + std::to_string(volume.pools) +
         " volume pools would take it by itself: " + Join(parts, "; ");
}

std::string DescribeRefusals(const std::vector<Refusal>& refusals) {
  std::vector<std::string> parts;
  for (const Refusal& refusal : refusals) {
    if (parts.size() == kRefusalsShown) {
      parts.push_back("and " + std::to_string(refusals.size() - kRefusalsShown) + " more");
      break;
    }
    std::string part = refusal.pool + " said " + refusal.reason;
    if (!refusal.message.empty()) part += " (" + refusal.message + ')';
    parts.push_back(std::move(part));
  }
  return Join(parts, ", ");
}

meta::Quantity QuantityOf(std::string_view resource, int64_t amount) {
  if (resource == apis::core::kCpu) return meta::Quantity::Milli(amount);
  const bool is_bytes = resource == apis::core::kMemory || resource == apis::core::kStorage;
  return meta::Quantity(
      amount, is_bytes ? meta::Quantity::Format::kBinarySi : meta::Quantity::Format::kDecimalSi);
}

std::string_view RuleText(Rule rule) {
  switch (rule) {
    case Rule::kPinned: return "are not the pool that is asked for";
    case Rule::kNotReady: return "are not ready";
    case Rule::kNoSession: return "are not connected";
    case Rule::kDeleting: return "are being deleted";
    case Rule::kCordoned: return "are cordoned";
    case Rule::kTaint: return "have a taint that is not tolerated";
    case Rule::kSelector: return "do not match the selector";
    case Rule::kClass: return "do not offer the class";
    case Rule::kFence: return "cannot fence";
    case Rule::kReservation: return "have no room of the reservation";
    case Rule::kRoom: return "have too little room";
    case Rule::kHostRoom: return "have too little room by their own account";
    case Rule::kVolumeReach: return "cannot reach a volume of the machine";
    case Rule::kJointVolume: return "have no room for a volume of the machine within reach";
    case Rule::kAffinity: return "lack the company that is required";
    case Rule::kAntiAffinity: return "have company that is refused";
    case Rule::kSpread: return "are in a place that has its share";
    case Rule::kRefused: return "refused";
  }
  return "";
}

std::string DescribeAmounts(const Resources& amounts) {
  std::vector<std::string> parts;
  for (const auto& [name, amount] : amounts) {
    parts.push_back(name.starts_with(kClassPrefix)
                        ? "room for one more of " + name
                        : QuantityOf(name, amount).ToString() + ' ' + name);
  }
  return Join(parts, ", ");
}

namespace {

// The reason in one word. Pools that cannot be asked are told from those that said no: the one is
// cured by a host that comes back, the other is not.
std::string_view ReasonOf(const Explanation& explanation, const std::vector<Refusal>& refusals) {
  int64_t unreachable = explanation.failed[static_cast<size_t>(Rule::kNotReady)] +
                        explanation.failed[static_cast<size_t>(Rule::kNoSession)];
  // No host was asked: those who may have it from before a restore are being heard.
  const auto is_not_settled = [](const Refusal& one) { return one.reason == "NotSettled"; };
  if (std::ranges::any_of(refusals, is_not_settled)) return "NotSettled";
  for (const Refusal& refusal : refusals) {
    if (refusal.reason != "NoAnswer" && refusal.reason != "NoSession") return "AllPoolsRefused";
    ++unreachable;
  }
  if (unreachable >= explanation.pools) return "NoPoolReachable";
  return refusals.empty() ? "Unschedulable" : "AllPoolsRefused";
}

}  // namespace

Pending DescribePending(const Explanation& explanation,
                        const std::vector<Refusal>& refusals,
                        const PoolDirectory& pools,
                        const Ties& ties) {
  Pending pending;
  if (explanation.pools == 0) {
    pending.reason = "NoPools";
    pending.reasons = "NoPools";
    pending.message = "there is no pool of this kind";
    return pending;
  }
  std::set<std::string> names;
  for (const auto& [count, rule] : FailuresOf(explanation)) names.emplace(RuleName(rule));
  for (const Refusal& refusal : refusals) names.insert(refusal.reason);
  pending.reason = ReasonOf(explanation, refusals);
  pending.reasons = Join(std::vector<std::string>(names.begin(), names.end()), ",");
  pending.message = DescribeRules(explanation, "pools");
  if (!ties.text.empty()) {
    // Room elsewhere would not help, even if no pool came as far as to fail this rule. Another
    // place of the volume is another reason.
    pending.reasons += "; " + ties.text;
    pending.message += "; " + ties.text;
  }
  if (!refusals.empty()) pending.message += "; asked: " + DescribeRefusals(refusals);
  const JointText joint = DescribeJoint(explanation, ties.joint, pools);
  pending.reasons += joint.reasons;
  pending.message += DescribeNearest(explanation, pools) + joint.message;
  return pending;
}

Ties DescribeTies(const Ask& ask, const PoolDirectory& pools) {
  std::vector<std::string> parts;
  size_t ties = 0;
  for (size_t i = 0; i < ask.bound.size(); ++i) {
    const PoolEntry* pool = pools.Find(ask.request.bound_volumes[i]);
    const std::string reach = pool == nullptr ? std::string() : DescribeReach(pool->pool.spec);
    if (reach.empty() || ++ties > kTiesShown) continue;
    parts.push_back("volume " + ask.bound[i]->key.name + " is on pool " + pool->pool.spec.name +
                    ", " + reach);
  }
  if (ties > kTiesShown) parts.push_back("and " + std::to_string(ties - kTiesShown) + " more");
  Ties out{.text = Join(parts, "; "), .joint = {}};
  for (const ObjectRecord* volume : ask.joint) out.joint.push_back(volume->key.name);
  out.joint.insert(out.joint.end(), ask.unmade.begin(), ask.unmade.end());
  return out;
}

std::string PlacedPoolOf(const meta::Object& object) {
  const auto& placement = apis::PlacementOf(object);
  return placement ? placement->pool_uid : std::string();
}

}  // namespace berth::scheduler
