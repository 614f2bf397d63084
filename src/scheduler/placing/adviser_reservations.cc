// SPDX-License-Identifier: Apache-2.0
// Reservations for all pools in the Adviser: every pool in question is judged by itself, as the
// part for it will be.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "scheduler/placing/adviser.h"
#include "scheduler/placing/explain_text.h"

namespace berth::scheduler {
namespace {

namespace dev = apis::berth_dev;

// Pools that an answer names; more are counted.
constexpr size_t kPoolsNamed = 4;

// The existing parts of the reservation, by the pool that each is for.
using Parts = std::map<std::string, const ObjectRecord*, std::less<>>;

// What came of the pools in question.
struct Count {
  int64_t keep = 0;                   // there is a part, and its host keeps the room
  int64_t would = 0;                  // nothing is in the way
  std::vector<std::string> not_kept;  // "beta, which lacks 1 cpu"
};

Parts ByPool(const std::vector<const ObjectRecord*>& all) {
  Parts parts;
  for (const ObjectRecord* part : all) {
    if (part->reserves->pools.size() == 1) parts[part->reserves->pools.front()] = part;
  }
  return parts;
}

std::string_view VerdictOf(const Count& count) {
  if (count.not_kept.empty()) return count.would == 0 ? dev::kVerdictPlaced : dev::kVerdictFits;
  return count.keep + count.would == 0 ? dev::kVerdictNoPool : dev::kVerdictFitsPartly;
}

bool Keeps(const ObjectRecord& part) {
  return !part.placed_uid.empty() && !part.is_leaving && !part.reserves->is_over;
}

// Only room is nearer than any other rule, and of these the later ones are.
bool IsNearer(const NearMiss& miss, const std::optional<NearMiss>& than) {
  if (!than) return true;
  if (miss.missing.empty() != than->missing.empty()) return than->missing.empty();
  return miss.missing.empty() && than->rule < miss.rule;
}

std::string Named(const std::vector<std::string>& words, std::string_view before) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == kPoolsNamed) return text + "; and " + std::to_string(words.size() - i) + " more";
    text += "; " + std::string(before) + words[i];
  }
  return text;
}

std::string DescribeCount(const Count& count,
                          const dev::PlacementReviewStatus& answer,
                          bool exists) {
  const std::string of = " of " + std::to_string(answer.pools) + " pools ";
  const std::string not_kept = Named(count.not_kept, "not ");
  if (exists) {
    return std::to_string(count.keep) + of + "keep it" +
           (count.would == 0 ? "" : ", " + std::to_string(count.would) + " more would") + not_kept;
  }
  if (!not_kept.empty()) return std::to_string(count.would) + of + "would keep it" + not_kept;
  return answer.pools == 1 ? "its one pool would keep it"
                           : "all " + std::to_string(answer.pools) + " pools would keep it";
}

}  // namespace

Adviser::Answer Adviser::ReviewParts(const ObjectRecord& whole) {
  Answer answer;
  const std::variant<Ask, NotYet> prepared = objects_.Prepare(whole);
  if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    answer.verdict = dev::kVerdictWaits;
    answer.message = not_yet->message;
    return answer;
  }
  const Request& asked = std::get<Ask>(prepared).request;
  const Requirements& wanted = RequirementsOf(asked.shape);
  answer.policy = PolicyName(wanted.policy);
  const bool exists = !whole.uid.empty();
  const Parts parts = exists ? ByPool(objects_.PartsOf(whole)) : Parts();
  Count count;
  std::array<int64_t, kRules> failed{};
  std::optional<NearMiss> nearest;
  std::vector<Refusal> refusals;
  for (const PoolEntry* pool : pools_.OfKind(PoolKind::kMachine)) {
    const bool is_named =
        asked.among.empty() || std::ranges::find(asked.among, pool->index) != asked.among.end();
    if (!is_named || !wanted.pools.Matches(pool->pool.spec.labels)) continue;
    ++answer.pools;
    Request request = asked;
    request.among = {pool->index};
    const auto part = parts.find(pool->pool.spec.name);
    if (part != parts.end()) {
      request.key = ObjectKey::FromUid(part->second->uid);
      if (Keeps(*part->second)) {
        ++count.keep;
        continue;
      }
      if (part->second->reserves->is_over) {
        count.not_kept.push_back(pool->pool.spec.name + " (its time is over)");
        continue;
      }
      std::ranges::move(placer_.RefusalsOf(part->second->uid), std::back_inserter(refusals));
    }
    // Its host is being asked: it has its room on the board already.
    const bool is_asked = exists && board_.PoolOf(request.key) == pool->index;
    std::optional<NearMiss> miss;
    if (!is_asked) miss = board_.MissOf(request, pool->index);
    if (!miss) {
      ++count.would;
      continue;
    }
    ++failed[static_cast<size_t>(miss->rule)];
    for (const auto& [name, amount] : miss->missing) ++answer.scarce[name];
    count.not_kept.push_back(DescribeMiss(*miss, pools_));
    if (IsNearer(*miss, nearest)) nearest = std::move(miss);
  }
  answer.fitting = count.keep + count.would;
  answer.room = count.would;
  TellFailed(failed, "", answer);
  if (nearest) TellNearest(*nearest, answer);
  TellRefusals(refusals, answer);
  if (answer.pools == 0) {
    answer.verdict = dev::kVerdictNoPool;
    answer.message = wanted.pools.terms.empty() ? "there is no pool of this kind"
                                                : "no pool has the labels that it asks for";
    return answer;
  }
  answer.verdict = VerdictOf(count);
  answer.message = DescribeCount(count, answer, exists);
  std::vector<std::string> unknown;
  for (const std::string& name : whole.reserves->pools) {
    if (pools_.FindByName(PoolKind::kMachine, name) == nullptr) unknown.push_back(name);
  }
  answer.message += Named(unknown, "there is no pool ");
  if (!refusals.empty()) answer.message += "; asked: " + DescribeRefusals(refusals);
  return answer;
}

}  // namespace berth::scheduler
