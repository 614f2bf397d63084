// SPDX-License-Identifier: Apache-2.0
// Groups in the Adviser: whether all members would get their pools at once.
#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "scheduler/placing/adviser.h"
#include "scheduler/placing/explain_text.h"

namespace berth::scheduler {
namespace {

namespace dev = apis::berth_dev;
using apis::compute::kMachineKind;

std::string Count(size_t part, size_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

}  // namespace

Adviser::Member Adviser::ReadMember(const ObjectRecord& record) {
  Member member{.name = record.key.name};
  if (!record.placed_uid.empty() || objects_.PlaceOf(record) != nullptr) {
    member.pool = record.pool_ref;
    return member;
  }
  // Its hosts are being asked: it has its room already.
  if (const auto pool = board_.PoolOf(ObjectKey::FromUid(record.uid))) {
    member.pool = NameOf(*pool);
    return member;
  }
  std::variant<Ask, NotYet> prepared = objects_.Prepare(record);
  if (NotYet* not_yet = std::get_if<NotYet>(&prepared)) {
    member.not_yet = std::move(not_yet->message);
  } else {
    member.ask = std::move(std::get<Ask>(prepared));
  }
  return member;
}

Adviser::Member Adviser::ReadMember(const Drafts::Draft& draft, Case& one) {
  ObjectRecord record = draft.record;
  SupposeReservation(record, one);
  Unmade unmade = TakeUnmadeVolumes(*draft.object, record);
  Member member = ReadMember(record);
  if (member.ask) unmade.AddTo(*member.ask);
  return member;
}

std::vector<Adviser::Member> Adviser::MembersOf(const client::ObjectKey& group, Case& one) {
  std::vector<Member> members;
  if (const GroupRecord* known = groups_.Find(group)) {
    for (const auto& [uid, member] : known->members) {
      const ObjectRecord* record = objects_.Find(uid);
      if (record != nullptr) members.push_back(ReadMember(*record));
    }
  }
  for (const auto& [name, draft] : one.drafts.objects) {
    const ObjectRecord& record = draft.record;
    if (record.kind != &kMachineKind || record.key.namespace_ != group.namespace_) continue;
    const auto& placement = draft.object->as<apis::compute::Machine>().spec.placement;
    const bool is_member =
        placement && placement->group_ref && placement->group_ref->name == group.name;
    // Who exists was counted above, or is in no group.
    if (!is_member || objects_.FindByKey(kMachineKind, record.key) != &record) continue;
    members.push_back(ReadMember(draft, one));
  }
  std::ranges::sort(members, {}, &Member::name);
  return members;
}

size_t Adviser::CountFitting(const std::vector<Request>& requests, size_t needed) {
  if (requests.size() <= kCountedTogetherMax) return CountTogether(board_, requests);
  for (const size_t count : {requests.size(), needed}) {
    Supposition trial(board_);
    if (trial.Place(std::span(requests).first(count))) return count;
  }
  return 0;
}

void Adviser::TellPlaces(const std::vector<Member>& members,
                         std::span<const Request> requests,
                         Answer& answer) {
  Supposition trial(board_);
  const auto places = trial.Place(requests);
  size_t next = 0;
  for (const Member& member : members) {
    // As many as a group may have a plan for: the answer is an object too.
    if (answer.members.size() == static_cast<size_t>(dev::kGroupMembersMax)) return;
    dev::MemberPlace& told = answer.members.emplace_back();
    told.name = member.name;
    told.pool = member.pool;
    told.message = member.not_yet;
    if (!member.ask || !places || next == places->size()) continue;
    const Candidate& place = (*places)[next++];
    told.pool = NameOf(place.pool);
    for (const PoolIndex pool : place.joint) told.volume_pools.push_back(NameOf(pool));
  }
}

Adviser::Answer Adviser::ReviewGroup(const dev::MachineGroup& group, Case& one) {
  const auto least = static_cast<size_t>(std::max(group.spec.min_members, 0));
  const std::vector<Member> members =
      MembersOf({.namespace_ = group.metadata.namespace_, .name = group.metadata.name}, one);
  std::vector<Request> requests;
  const Ask* first = nullptr;
  size_t placed = 0;
  std::string not_yet;
  for (const Member& member : members) {
    if (member.ask) {
      if (first == nullptr) first = &*member.ask;
      requests.push_back(member.ask->request);
    } else if (member.not_yet.empty()) {
      ++placed;
    } else if (not_yet.empty()) {
      not_yet = "; " + member.name + ": " + member.not_yet;
    }
  }
  Answer answer;
  answer.wanted = static_cast<int32_t>(members.size());
  answer.room = static_cast<int64_t>(placed);
  const size_t needed = placed >= least ? 0 : least - placed;
  if (requests.size() < needed) {
    answer.verdict = dev::kVerdictWaits;
    answer.message =
        members.size() < least
            ? "has " + Count(members.size(), least) +
                  " members, counting those that exist and those that come with it"
            : Count(requests.size(), needed) + " members that are needed can be placed" + not_yet;
    TellPlaces(members, {}, answer);
    return answer;
  }
  const size_t fits = CountFitting(requests, needed);
  answer.room += static_cast<int64_t>(fits);
  answer.room_is_more = requests.size() > kCountedTogetherMax && fits < requests.size();
  const bool has_enough = fits >= needed;
  TellPlaces(members, std::span(requests).first(has_enough ? fits : 0), answer);
  if (placed + fits == members.size()) {
    answer.verdict = dev::kVerdictFits;
    answer.message = members.size() == 1
                         ? "its one member fits"
                         : "all " + std::to_string(members.size()) + " members fit at once";
    return answer;
  }
  answer.verdict = has_enough ? dev::kVerdictFitsPartly : dev::kVerdictNoPool;
  answer.message = std::string(answer.room_is_more ? "room for at least " : "room for ") +
                   Count(placed + fits, members.size()) + " members at once" + not_yet;
  if (has_enough) return answer;
  answer.message += "; none gets a pool before " + std::to_string(least) + " can";
  if (fits == 0) {
    const Explanation why = board_.Explain(first->request, 1);
    answer.message += "; " + DescribePending(why, {}, pools_, DescribeTies(*first, pools_)).message;
  }
  return answer;
}

}  // namespace berth::scheduler
