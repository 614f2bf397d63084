// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/adviser.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "scheduler/placing/explain_text.h"

namespace berth::scheduler {
namespace {

namespace dev = apis::berth_dev;
using apis::compute::kMachineKind;
using apis::storage::kVolumeKind;

dev::PlacementReviewStatus Settled(std::string_view verdict, std::string message) {
  dev::PlacementReviewStatus answer;
  answer.verdict = verdict;
  answer.message = std::move(message);
  return answer;
}

std::string_view ReluctanceOf(Tier tier) {
  switch (tier) {
    case Tier::kWilling: return "";
    case Tier::kPreferNot: return "PreferNoSchedule";
    case Tier::kAvoided: return "Failing";
  }
  return "";
}

// Why a reservation needs no pool; "" if it does.
std::string_view WhyNoPlace(const ReservationFacts& facts) {
  if (facts.is_over) return "is over: its time has passed";
  return facts.left == 0 ? "was used: machines have all of its room" : "";
}

// "room for 17", "room for 1000 or more".
std::string DescribeRoom(const dev::PlacementReviewStatus& answer) {
  return "room for " + std::to_string(answer.room) + (answer.room_is_more ? " or more" : "");
}

// "(2 of 5 pools fit; room for 17)".
std::string DescribeChoice(const dev::PlacementReviewStatus& answer) {
  return '(' + std::to_string(answer.fitting) + " of " + std::to_string(answer.pools) +
         (answer.pools == 1 ? " pool fits; " : " pools fit; ") + DescribeRoom(answer) + ')';
}

// Of an object that is on a pool; answer.pool is where it would go, "" for nowhere.
std::string DescribePlaced(const std::string& pool, const dev::PlacementReviewStatus& answer) {
  const std::string is_on = "is on pool " + pool;
  if (answer.pool.empty()) return is_on + "; decided anew, " + answer.message;
  if (answer.pool == pool) return is_on + " and would go there again " + DescribeChoice(answer);
  return is_on + "; decided anew, it would go to " + answer.pool + ' ' + DescribeChoice(answer);
}

std::string DescribeSet(int32_t wanted, const dev::PlacementReviewStatus& answer) {
  const std::string first = ", the first on pool " + answer.pool + ' ' + DescribeChoice(answer);
  if (answer.room >= wanted) {
    return (wanted == 1 ? "its one machine fits"
                        : "all " + std::to_string(wanted) + " machines fit") +
           first;
  }
  return (answer.room_is_more ? "at least " : "") + std::to_string(answer.room) + " of " +
         std::to_string(wanted) + " machines fit" + first;
}

}  // namespace

Result<dev::PlacementReviewStatus> Adviser::Review(const client::PlacementQuestion& question) {
  if (!is_ready_()) {
    return Unavailable(
        "nothing is placed by this server at the moment: its scheduler does not lead, or is still "
        "reading; ask again");
  }
  const meta::Object& object = question.object;
  const bool is_set = &object.kind() == &dev::kMachineSetKind;
  const bool is_group = &object.kind() == &dev::kMachineGroupKind;
  if (!is_set && !is_group && !apis::IsPlaceable(object.kind())) {
    return BadRequest("a " + std::string(object.kind().kind) +
                      " is not placed; machines, volumes, snapshots, buckets, reservations, "
                      "machine sets and machine groups are");
  }
  Case one(objects_, board_, question.copies);
  ReadDrafts(question, one);
  if (is_set) return ReviewSet(object.as<dev::MachineSet>(), one);
  if (is_group) return ReviewGroup(object.as<dev::MachineGroup>(), one);
  return ReviewOne(object, one);
}

Adviser::Answer Adviser::ReviewOne(const meta::Object& object, Case& one) {
  ObjectRecord record = objects_.Sketch(object);
  if (record.is_deleting) return Settled(dev::kVerdictNotNeeded, "is being deleted");
  if (record.reserves != nullptr) {
    if (const std::string_view why = WhyNoPlace(*record.reserves); !why.empty()) {
      return Settled(dev::kVerdictNotNeeded, std::string(why));
    }
    if (record.reserves->is_for_all) return ReviewParts(record);
  } else if (record.kind != &kMachineKind && record.class_name.empty()) {
    return Settled(dev::kVerdictNotNeeded, "has no class: it was made elsewhere and needs no pool");
  }
  const bool is_placed = !record.placed_uid.empty() || objects_.PlaceOf(record) != nullptr;
  if (!is_placed && record.kind == &kVolumeKind) {
    if (const ObjectRecord* machine = objects_.WaitsWith(record)) {
      return ReviewJoint(record, *machine, one.copies);
    }
    if (const meta::Object* machine = UserOf(record, one)) {
      const Answer whole = ReviewOne(*machine, one);
      return Settled(
          whole.verdict,
          "is placed together with machine " + machine->metadata().name + ": " + whole.message);
    }
  }
  SupposeReservation(record, one);
  Unmade unmade = TakeUnmadeVolumes(object, record);
  std::variant<Ask, NotYet> prepared = objects_.Prepare(record);
  Answer answer;
  if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    answer = Settled(dev::kVerdictWaits, not_yet->message);
  } else {
    Ask& ask = std::get<Ask>(prepared);
    unmade.AddTo(ask);
    Explain(ask, record, one.copies, answer);
    if (!is_placed) TellHold(ask, record, answer);
    if (answer.verdict == dev::kVerdictNoPool) TellPreemption(object, record, ask, answer);
  }
  if (is_placed) {
    answer.verdict = dev::kVerdictPlaced;
    answer.message = DescribePlaced(record.pool_ref, answer);
    answer.pool = record.pool_ref;
  }
  return answer;
}

// The machine may be what waits, or the volume what holds it up: its own rules tell which.
Adviser::Answer Adviser::ReviewJoint(const ObjectRecord& volume,
                                     const ObjectRecord& machine,
                                     int64_t copies) {
  Answer answer;
  std::string why;
  const std::variant<Ask, NotYet> prepared = objects_.Prepare(volume);
  if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    why = not_yet->message;
  } else {
    const Ask& ask = std::get<Ask>(prepared);
    Explain(ask, volume, copies, answer);
    if (answer.ranked.empty()) why = DescribeVolume(board_.ExplainAnew(ask.request, 1), pools_);
  }
  answer.verdict = dev::kVerdictWaits;
  answer.pool.clear();
  answer.message =
      "is placed together with machine " + machine.key.name + ", which has no place yet";
  if (!why.empty()) answer.message += "; by itself, " + why;
  return answer;
}

// One machine of the set stands for all.
Adviser::Answer Adviser::ReviewSet(const dev::MachineSet& set, Case& one) {
  apis::compute::Machine machine;
  machine.metadata = set.spec.machine_template.metadata;
  machine.metadata.namespace_ = set.metadata.namespace_;
  machine.metadata.name = set.metadata.name;
  machine.spec = set.spec.machine_template.spec;
  const int32_t wanted = set.spec.replicas.value_or(1);
  one.copies = std::max<int64_t>(one.copies, wanted);
  Answer answer = ReviewOne(meta::Object::Of(kMachineKind, std::move(machine)), one);
  answer.wanted = wanted;
  if (answer.verdict != dev::kVerdictFits) return answer;
  if (answer.room < wanted) answer.verdict = dev::kVerdictFitsPartly;
  answer.message =
      wanted == 0 ? "no machines are wanted; " + answer.message : DescribeSet(wanted, answer);
  return answer;
}

void Adviser::Explain(const Ask& ask, const ObjectRecord& record, int64_t copies, Answer& answer) {
  const Explanation explanation = board_.ExplainAnew(ask.request, kRankedMax);
  const std::vector<Refusal> refusals = placer_.RefusalsOf(record.uid);
  answer.policy = PolicyName(RequirementsOf(ask.request.shape).policy);
  answer.pools = explanation.pools;
  answer.fitting = explanation.passed;
  const Ties ties = DescribeTies(ask, pools_);
  TellFailed(explanation.failed, ties.text, answer);
  answer.scarce = explanation.scarce;
  if (explanation.nearest) TellNearest(*explanation.nearest, answer);
  TellRefusals(refusals, answer);
  Rank(explanation, ask, answer);
  const Fitting fitting = board_.Fit(ask.request, copies);
  answer.room = fitting.copies;
  answer.room_is_more = fitting.is_limited;
  if (answer.ranked.empty()) {
    answer.verdict = dev::kVerdictNoPool;
    answer.message = DescribePending(explanation, refusals, pools_, ties).message;
    return;
  }
  answer.verdict = dev::kVerdictFits;
  answer.pool = answer.ranked.front().pool;
  answer.message = "would be placed on pool " + answer.pool + ' ' + DescribeChoice(answer);
  if (!refusals.empty()) {
    answer.message += "; the last attempt failed: " + DescribeRefusals(refusals);
  }
}

void Adviser::TellFailed(const std::array<int64_t, kRules>& counts,
                         const std::string& ties,
                         Answer& answer) {
  for (size_t i = 0; i < kRules; ++i) {
    const Rule rule = static_cast<Rule>(i);
    if (counts[i] == 0) continue;
    dev::RuleCount& failed = answer.failed.emplace_back();
    failed.rule = RuleName(rule);
    failed.pools = counts[i];
    failed.message = RuleText(rule);
    if (rule == Rule::kVolumeReach && !ties.empty()) failed.message += ": " + ties;
  }
}

void Adviser::TellNearest(const NearMiss& miss, Answer& answer) const {
  dev::NearestPool& nearest = answer.nearest.emplace();
  nearest.pool = NameOf(miss.pool);
  nearest.rule = RuleName(miss.rule);
  for (const auto& [name, amount] : miss.missing) nearest.missing[name] = QuantityOf(name, amount);
}

void Adviser::TellRefusals(const std::vector<Refusal>& refusals, Answer& answer) {
  for (const Refusal& refusal : refusals) {
    answer.refusals.push_back(
        {.pool = refusal.pool, .reason = refusal.reason, .message = refusal.message});
  }
}

// The condition of the object says the same, and that where it could go is not all that it needs.
void Adviser::TellHold(const Ask& ask, const ObjectRecord& record, Answer& answer) const {
  if (record.uid.empty()) return;  // a draft: nothing of it is under way
  const std::optional<Pending> hold = placer_.ExplainHold(record, ask);
  if (!hold) return;
  answer.verdict = dev::kVerdictWaits;
  answer.message = hold->message;
  answer.pool.clear();
}

// An object that exists is told by its condition, once somebody is stopped for it.
void Adviser::TellPreemption(const meta::Object& draft,
                             const ObjectRecord& record,
                             const Ask& ask,
                             Answer& answer) {
  if (!record.uid.empty() || record.kind != &kMachineKind) return;
  const auto& placement = draft.as<apis::compute::Machine>().spec.placement;
  if (!placement || placement->group_ref) return;  // members of groups wait
  ObjectRecord important = record;
  important.priority = objects_.PriorityOf(record);
  if (!objects_.MayPreempt(important)) return;
  Request request = ask.request;
  request.priority = important.priority;
  const std::optional<Preemption> plan = board_.Preempt(request, objects_.BudgetsNow());
  if (!plan) return;
  const size_t victims = plan->victims.size();
  answer.message += "; its priority may make room: " + std::to_string(victims) +
                    (victims == 1 ? " less important machine" : " less important machines") +
                    " on pool " + NameOf(plan->pool) + " would be stopped for it";
}

void Adviser::Rank(const Explanation& explanation, const Ask& ask, Answer& answer) const {
  for (const Candidate& candidate : explanation.ranked) {
    dev::RankedPool& ranked = answer.ranked.emplace_back();
    ranked.pool = NameOf(candidate.pool);
    ranked.score = candidate.level;
    ranked.preference = candidate.points;
    ranked.reluctance = ReluctanceOf(candidate.tier);
    for (const PoolIndex volume_pool : candidate.joint) {
      ranked.volume_pools.push_back(NameOf(volume_pool));
    }
    if (ask.left == candidate.pool) ranked.reluctance = "Left";
  }
  // A machine that was moved away goes back only if nothing else will do.
  const auto left = std::ranges::find(answer.ranked, "Left", &dev::RankedPool::reluctance);
  if (left != answer.ranked.end()) std::rotate(left, left + 1, answer.ranked.end());
}

std::optional<client::PoolRoom> Adviser::RoomOf(const meta::KindInfo& pool_kind,
                                                std::string_view name) const {
  const PoolKind kind = &pool_kind == &apis::compute::kMachinePoolKind  ? PoolKind::kMachine
                        : &pool_kind == &apis::storage::kVolumePoolKind ? PoolKind::kVolume
                                                                        : PoolKind::kBucket;
  const PoolEntry* entry = pools_.FindByName(kind, name);
  if (entry == nullptr) return std::nullopt;
  const PoolRoom room = board_.RoomOf(entry->index);
  client::PoolRoom out;
  out.objects = room.objects;
  const auto add = [](const Resources& amounts, std::map<std::string, meta::Quantity>& list) {
    for (const auto& [resource, amount] : amounts) {
      // A pool that only counts per class has shares, which are no amounts of anything.
      if (resource != kShareResource) list[resource] = QuantityOf(resource, amount);
    }
  };
  add(room.capacity, out.capacity);
  add(room.promised, out.allocated);
  add(room.free, out.free);
  return out;
}

std::string Adviser::NameOf(PoolIndex pool) const {
  const PoolEntry* entry = pools_.Find(pool);
  return entry == nullptr ? std::string() : entry->pool.spec.name;
}

}  // namespace berth::scheduler
