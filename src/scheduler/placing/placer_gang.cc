// SPDX-License-Identifier: Apache-2.0
// The part of the Placer that places groups.
#include <algorithm>
#include <set>
#include <utility>

#include "apis/berth/machine_group.h"
#include "base/check.h"
#include "rt/chaos.h"
#include "scheduler/core/supposition.h"
#include "scheduler/placing/explain_text.h"
#include "scheduler/placing/placer.h"

namespace berth::scheduler {
namespace {

// What one commit of a store holds, as the binder counts it: two keys per object, three per pool,
// the Lease. Whatever is more is planned first.
constexpr size_t kKeysPerCommit = 128;
constexpr size_t kKeysPerObject = 2;
constexpr size_t kKeysPerPool = 3;
constexpr int kPlanAttempts = 5;

std::string Count(size_t part, size_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

bool FitsOneCommit(const client::BindRequest& request) {
  std::set<std::string> pools;
  for (const client::BindItem& item : request.items) pools.insert(item.pool_uid);
  return 1 + request.items.size() * kKeysPerObject + pools.size() * kKeysPerPool <= kKeysPerCommit;
}

}  // namespace

void Placer::OnGroups() {
  for (const client::ObjectKey& key : groups_.TakeTouched()) {
    ConsiderGroup(key);
    if (on_group_) on_group_(key);
  }
}

void Placer::ConsiderGroup(const client::ObjectKey& key) {
  const GroupRecord* group = groups_.Find(key);
  if (group == nullptr) {
    gangs_.erase(key);
    return;
  }
  bool wants_together = false;
  for (const auto& [uid, member] : group->members) {
    const ObjectRecord* record = objects_.Find(uid);
    if (member.is_placed || record == nullptr || !objects_.NeedsPlace(*record)) continue;
    reports_.Waits(uid);
    if (!groups_.GoesAlone(uid)) {
      wants_together = true;
    } else if (!attempts_.contains(uid) && !queue_.Find(uid)) {
      queue_.Add({.uid = uid, .tenant = record->key.namespace_, .priority = record->priority});
    }
  }
  if (!wants_together || !group->is_complete()) {
    gangs_.erase(key);
  } else if (const auto [wait, is_new] = gangs_.try_emplace(key); is_new) {
    wait->second.due = loop_.Now();
    wait->second.pause = kGangPauseFirst;
  }
  Schedule();
}

void Placer::WakeGangs() {
  if (gangs_.empty()) return;
  // Not at once: what makes room for one member often makes room for the next in a moment. And not
  // for every change: a try costs as much as placing all members.
  for (auto& [key, wait] : gangs_) {
    const Time soon = std::max(loop_.Now() + kGangPauseFirst, wait.tried + wait.pause / 4);
    wait.due = std::min(wait.due, soon);
  }
  Schedule();
}

std::optional<Time> Placer::NextGang() const {
  std::optional<Time> due;
  if (gang_) return due;
  for (const auto& [key, wait] : gangs_) due = std::min(due.value_or(wait.due), wait.due);
  return due;
}

void Placer::StartGang() {
  if (gang_ || !leadership_) return;
  const Time now = loop_.Now();
  const client::ObjectKey* next = nullptr;
  std::pair<int32_t, std::string> best;
  for (const auto& [key, wait] : gangs_) {
    const GroupRecord* group = groups_.Find(key);
    if (wait.due > now || group == nullptr) continue;
    int32_t priority = INT32_MIN;
    for (const auto& [uid, member] : group->members) priority = std::max(priority, member.priority);
    // Larger priorities first, then smaller UIDs.
    const std::pair<int32_t, std::string> rank{-std::max(priority, INT32_MIN + 1), group->uid};
    if (next != nullptr && best <= rank) continue;
    next = &key;
    best = rank;
  }
  if (next == nullptr) return;
  const GroupRecord* group = groups_.Find(*next);
  gang_.emplace();
  gang_->key = *next;
  gang_->uid = group->uid;
  gang_->deadline = now + group->timeout;
  GangWait& wait = gangs_.at(*next);
  if (now <= wait.tried + RefusalBook::kKeptFor) {
    gang_->refused = std::exchange(wait.refused, {});
    gang_->refusals = std::exchange(wait.refusals, {});
  }
  wait.refused.clear();
  wait.refusals.clear();
  PlaceGang();
}

// One round: room for all on the board, then all hosts are asked.
void Placer::PlaceGang() {
  const GroupRecord* group = groups_.Find(gang_->key);
  if (group == nullptr || group->uid != gang_->uid || !group->is_complete() ||
      group->needed() == 0) {
    return EndGang("", "");
  }
  std::vector<Ask> asks;
  std::vector<std::string> uids;
  std::string not_ready;
  for (const auto& [uid, member] : group->members) {
    const ObjectRecord* record = objects_.Find(uid);
    if (member.is_placed || record == nullptr || !objects_.NeedsPlace(*record)) continue;
    if (attempts_.contains(uid)) continue;  // on its own way still
    std::variant<Ask, NotYet> prepared = objects_.Prepare(*record);
    if (const NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
      not_ready = record->key.name + ": " + not_yet->message;
      continue;
    }
    Ask& ask = asks.emplace_back(std::move(std::get<Ask>(prepared)));
    ask.request.refused = gang_->refused[uid];
    uids.push_back(uid);
  }
  const size_t needed = group->needed();
  if (asks.size() < needed) {
    return EndGang("MembersNotReady",
                   Count(asks.size(), needed) + " members that are needed can be placed" +
                       (not_ready.empty() ? "" : "; " + not_ready));
  }
  std::vector<Request> requests;
  for (const Ask& ask : asks) requests.push_back(ask.request);
  std::optional<std::vector<Candidate>> places = board_.PlaceGroup(requests);
  if (!places && requests.size() > needed) {
    // Those beyond the minimum come when there is room for them.
    requests.resize(needed);
    places = board_.PlaceGroup(requests);
  }
  if (!places) {
    const std::string refusals = DescribeGangRefusals();
    std::string text = DescribeGangMiss(requests, asks.front());
    if (refusals.empty()) return EndGang("Unschedulable", std::move(text));
    return EndGang("PoolsRefused", text + "; " + refusals);
  }
  gang_->members.assign(uids.begin(), uids.begin() + static_cast<ptrdiff_t>(requests.size()));
  gang_->ready = 0;
  ++gang_->rounds;
  for (size_t i = 0; i < requests.size(); ++i) {
    auto attempt = std::make_unique<Attempt>();
    attempt->uid = uids[i];
    attempt->request = std::move(requests[i]);
    attempt->candidate = std::move((*places)[i]);
    attempt->in_gang = true;
    for (const ObjectRecord* volume : asks[i].joint) attempt->joint.push_back(volume->uid);
    queue_.Remove(uids[i]);
    attempts_.insert_or_assign(uids[i], std::move(attempt));
  }
  // Answers may come while others are still asked: a round that is over asks nobody more.
  const int round = gang_->rounds;
  for (const std::string& uid : std::vector<std::string>(gang_->members)) {
    if (!gang_ || gang_->rounds != round) return;
    const auto found = attempts_.find(uid);
    if (found == attempts_.end()) return;
    AskHosts(*found->second);
  }
}

std::string Placer::DescribeGangMiss(const std::vector<Request>& requests, const Ask& first) {
  std::string text = "there is no room for " + std::to_string(requests.size()) + " members at once";
  // How many would fit says more than why the last one does not.
  const size_t fits = requests.size() > kCountedTogetherMax ? 0 : CountTogether(board_, requests);
  if (fits > 0) return text + "; there is for " + std::to_string(fits);
  const Explanation why = board_.Explain(requests.front(), 1);
  return text + "; " + DescribePending(why, {}, pools_, DescribeTies(first, pools_)).message;
}

void Placer::GangReady(Attempt& attempt) {
  attempt.state = Attempt::State::kReady;
  if (!gang_ || ++gang_->ready < gang_->members.size()) return;
  gang_->is_binding = true;
  ++binds_;
  scope_.Spawn("scheduler.bind_gang", BindGang());
}

// "hosts refused: alpha said NoDisk, beta said NoRoom"; "" if none did.
std::string Placer::DescribeGangRefusals() const {
  std::string text;
  for (const Refusal& refusal : gang_->refusals) {
    text += (text.empty() ? "hosts refused: " : ", ") + refusal.pool + " said " + refusal.reason;
  }
  return text;
}

void Placer::GangRefused(Attempt& attempt, const RefusalBook::Told& refusal) {
  CHECK(gang_.has_value()) << attempt.uid;
  gang_->refused[attempt.uid].push_back(attempt.candidate.pool);
  if (gang_->refusals.size() < kGangRefusalsTold) {
    const PoolEntry* host = pools_.Find(refusal.host);
    gang_->refusals.push_back({.pool = host == nullptr ? "a pool" : host->pool.spec.name,
                               .reason = refusal.reason,
                               .message = refusal.message});
  }
  AbortRound();
  if (!leadership_) return EndGang("PoolsRefused", DescribeGangRefusals());
  if (gang_->rounds >= options_.rounds_max || loop_.Now() >= gang_->deadline) return GangGoesOn();
  REACHED("gang.next_round");
  PlaceGang();
}

// This try is over, but not everybody was asked: soon again, behind those who refused.
void Placer::GangGoesOn() {
  REACHED("gang.gave_up");
  const client::ObjectKey key = gang_->key;
  std::map<std::string, std::vector<PoolIndex>> refused = std::move(gang_->refused);
  std::vector<Refusal> refusals = gang_->refusals;
  size_t count = 0;
  for (const auto& [uid, pools] : refused) count += pools.size();
  const auto before = gangs_.find(key);
  const Duration pause = before == gangs_.end() ? kGangPauseFirst : before->second.pause;
  EndGang("PoolsRefused", DescribeGangRefusals());
  const auto wait = gangs_.find(key);
  if (wait == gangs_.end() || count >= kGangRefusedMax) return;
  wait->second.refused = std::move(refused);
  wait->second.refusals = std::move(refusals);
  wait->second.pause = pause;
  wait->second.due = loop_.Now() + kGangPauseFirst;
}

// Gives back every hold and all room.
void Placer::AbortRound() {
  for (const std::string& uid : gang_->members) Drop(uid);
  gang_->members.clear();
  gang_->ready = 0;
  gang_->is_binding = false;
}

// The gang is over. Without a reason it needs nothing more, as far as is known; with one it is
// tried again later.
void Placer::EndGang(std::string reason, std::string message) {
  AbortRound();
  // Now: what it gave back itself must not shorten its pause.
  if (is_room_freed_) OnBoardChanged();
  const client::ObjectKey key = gang_->key;
  gang_.reset();
  if (reason.empty()) {
    gangs_.erase(key);
  } else if (const auto wait = gangs_.find(key); wait != gangs_.end()) {
    wait->second.reason = std::move(reason);
    wait->second.message = std::move(message);
    wait->second.tried = loop_.Now();
    wait->second.due = loop_.Now() + wait->second.pause;
    wait->second.pause = std::min(wait->second.pause * 2, kGangPauseMax);
    if (const GroupRecord* group = groups_.Find(key)) {
      for (const auto& [uid, member] : group->members) {
        if (!member.is_placed && objects_.Find(uid) != nullptr) reports_.FoundNone(uid);
      }
    }
  }
  if (on_group_) on_group_(key);
  Schedule();
}

rt::Task<Status> Placer::BindGang() {
  client::BindRequest request;
  request.holder = leadership_ ? leadership_->holder : std::string();
  request.term = leadership_ ? leadership_->term : 0;
  bool is_current = leadership_.has_value();
  std::map<std::string, std::string> plan;
  const std::vector<std::string> members = gang_->members;
  for (const std::string& uid : members) {
    Attempt& attempt = *attempts_.find(uid)->second;
    is_current = is_current && IsCurrent(attempt, objects_, pools_) && !attempt.is_given_up &&
                 loop_.Now() - attempt.asked <= options_.hold_ttl / 2;
    if (!is_current) break;
    attempt.state = Attempt::State::kBinding;
    const client::BindRequest part = BindingFor(attempt, objects_, pools_);
    plan[uid] = part.items.front().pool;
    request.items.insert(request.items.end(), part.items.begin(), part.items.end());
  }
  if (!is_current) {
    --binds_;
    EndGang("MembersChanged", "members changed while their hosts were asked");
    co_return OkStatus();
  }
  if (FitsOneCommit(request)) {
    std::vector<client::BindRequest> requests;
    requests.push_back(std::move(request));
    using Verdicts = std::vector<Result<std::vector<meta::Object>>>;
    const Verdicts verdicts = co_await binder_.BindBatch(std::move(requests));
    --binds_;
    const Status verdict = verdicts.front().status();
    if (!verdict.Is(Reason::kRequestTooLarge)) {
      GangVerdict(members, verdict);
      co_return OkStatus();
    }
    ++binds_;
  }
  const Status planned = co_await CommitPlan(std::move(plan));
  --binds_;
  if (!planned.ok()) {
    REACHED("gang.plan_failed");
    if (planned.Is(Reason::kCancelled)) co_return planned;
    // If it was written all the same, the group's own events say so, and it is carried out.
    EndGang("PlanNotWritten", std::string(planned.message()));
    co_return OkStatus();
  }
  REACHED("gang.planned");
  // From here on everybody goes alone, with the hold that its host has.
  gang_->members.clear();
  for (const std::string& uid : members) {
    const auto found = attempts_.find(uid);
    if (found == attempts_.end()) continue;
    found->second->in_gang = false;
    // Whatever becomes of the hold, it is looked at again.
    const ObjectRecord* record = objects_.Find(uid);
    if (record != nullptr) {
      queue_.Add({.uid = uid, .tenant = record->key.namespace_, .priority = record->priority});
    }
    MakeReady(*found->second);
  }
  EndGang("", "");
  co_return OkStatus();
}

void Placer::GangVerdict(const std::vector<std::string>& members, const Status& verdict) {
  if (verdict.ok()) {
    REACHED("gang.bound_in_one_commit");
    gang_->members.clear();
    for (const std::string& uid : members) {
      if (const auto found = attempts_.find(uid); found != attempts_.end()) Bound(*found->second);
    }
    return EndGang("", "");
  }
  if (verdict.Is(Reason::kCancelled)) return EndGang("", "");
  if (IsUnknownOutcome(verdict)) {
    // All or none are bound: the members' own events say which, and room is taken by then (S4).
    REACHED("gang.bind_unknown");
    gang_->members.clear();
    for (const std::string& uid : members) {
      const auto found = attempts_.find(uid);
      if (found == attempts_.end()) continue;
      found->second->in_gang = false;
      scope_.Spawn("scheduler.read_back", ReadBack(uid));
    }
    return EndGang("BindUnknown", "the store did not say whether the members are bound");
  }
  bind_conflicts_.Add();
  REACHED("gang.bind_refused");
  EndGang("NotBindable", std::string(verdict.message()));
}

// The plan is durable before anything of it is done: any leader rolls it forward (sequence 21).
rt::Task<Status> Placer::CommitPlan(std::map<std::string, std::string> plan) {
  const client::ObjectKey key = gang_->key;
  const std::string uid = gang_->uid;
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  Status last;
  for (int i = 0; i < kPlanAttempts; ++i) {
    Result<meta::Object> object = co_await client_.Get(apis::berth_dev::kMachineGroupKind, key);
    CO_TRY_STATUS(object);
    if (object->metadata().uid != uid) co_return Conflict("the group is another one by now");
    auto& status = object->as<apis::berth_dev::MachineGroup>().status;
    status.phase = apis::berth_dev::kGroupCommitted;
    status.committed = plan;
    const Result<meta::Object> written = co_await client_.Update(*std::move(object), options);
    if (written.ok()) co_return OkStatus();
    last = written.status();
    if (!last.Is(Reason::kConflict)) break;
  }
  co_return last;
}

std::optional<GangWait> Placer::GangWaitOf(const client::ObjectKey& key) const {
  const auto found = gangs_.find(key);
  if (found == gangs_.end()) return std::nullopt;
  return found->second;
}

// Why a member that goes with its group waits.
void Placer::ExplainMember(const client::ObjectKey& key, Pending& pending) const {
  const GroupRecord* group = groups_.Find(key);
  pending.reason = "WaitingForGroup";
  if (group == nullptr || !group->exists()) {
    pending.message = "there is no MachineGroup " + key.name;
    pending.reasons = "GroupNotFound";
    return;
  }
  if (!group->is_complete()) {
    pending.message = "group " + key.name + " has " +
                      Count(group->members.size(), group->min_members) + " members";
    pending.reasons = "GroupIncomplete";
    return;
  }
  const std::optional<GangWait> wait = GangWaitOf(key);
  pending.reasons = wait ? wait->reason : std::string();
  pending.message = "waits for the others of group " + key.name;
  if (wait && !wait->message.empty()) pending.message += ": " + wait->message;
}

}  // namespace berth::scheduler
