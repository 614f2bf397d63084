// SPDX-License-Identifier: Apache-2.0
// The Placer and its hosts: offers, answers, holds.
#include <algorithm>
#include <utility>

#include "fleet/refusals.h"
#include "rt/chaos.h"
#include "scheduler/placing/placer.h"

namespace berth::scheduler {

void Placer::AskHosts(Attempt& attempt) {
  attempt.state = Attempt::State::kAsking;
  attempt.asked = loop_.Now();
  attempt.hosts.clear();
  std::vector<fleet::Offer> offers = OffersFor(attempt,
                                               objects_,
                                               pools_,
                                               static_cast<uint64_t>(leadership_->term),
                                               last_offer_,
                                               options_.hold_ttl);
  for (const fleet::Offer& offer : offers) {
    attempt.hosts.push_back({.pool_uid = offer.item.pool_uid,
                             .pool = pools_.FindByUid(offer.item.pool_uid)->index,
                             .offer = offer.id});
  }
  if (offers.empty()) return MakeReady(attempt);  // API mode: nobody to ask
  for (fleet::Offer& offer : offers) {
    const std::string pool_uid = offer.item.pool_uid;
    fleet_.Ask(
        std::move(offer),
        options_.answer_limit,
        [self = self_, fleet = &fleet_, uid = attempt.uid, pool_uid](const fleet::Answer& answer) {
          if (*self != nullptr) return (*self)->OnAnswer(uid, answer);
          if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
            fleet->Release(pool_uid, answer.id);
          }
        });
  }
}

void Placer::OnAnswer(const std::string& uid, const fleet::Answer& answer) {
  const auto found = attempts_.find(uid);
  HostAsked* host = nullptr;
  if (found != attempts_.end()) {
    for (HostAsked& asked : found->second->hosts) {
      if (asked.offer == answer.id) host = &asked;
    }
  }
  // The attempt went on without this answer; Drop and TryNext have given the hold back.
  if (host == nullptr || host->said != HostAsked::Said::kNothing) return;
  Attempt& attempt = *found->second;
  if (answer.verdict != fleet::Answer::Verdict::kAccepted) {
    host->said = HostAsked::Said::kNo;
    return Refused(attempt, *host, answer);
  }
  host->said = HostAsked::Said::kYes;
  board_.Held(attempt.request.key, VersionOf(answer.ledger));
  for (const Request& joint : attempt.request.joint) {
    board_.Held(joint.key, VersionOf(answer.ledger));
  }
  const bool all = std::all_of(attempt.hosts.begin(), attempt.hosts.end(), [](const auto& asked) {
    return asked.said == HostAsked::Said::kYes;
  });
  if (all) MakeReady(attempt);
}

void Placer::Refused(Attempt& attempt, const HostAsked& host, const fleet::Answer& answer) {
  refused_.Add();
  RefusalBook::Told refusal{.host = host.pool};
  if (answer.verdict == fleet::Answer::Verdict::kNoAnswer) {
    REACHED("scheduler.no_answer");
    refusal.reason = answer.reason.empty() ? "NoAnswer" : answer.reason;
    AvoidFor(host.pool, options_.avoid_silent);
  } else if (answer.verdict == fleet::Answer::Verdict::kAlreadyHere) {
    // The host has it at another placement: the store will say how that came (S4).
    REACHED("scheduler.already_here");
    refusal.reason = "AlreadyHere";
  } else {
    REACHED("scheduler.refused");
    refusal.reason = answer.reason.empty() ? "Refused" : answer.reason;
    refusal.message = answer.message;
    const ObjectRecord* record = objects_.Find(attempt.uid);
    if (answer.reason == fleet::kClassDiffers && record != nullptr) {
      pools_.WithdrawClass(host.pool, record->class_name);
    }
  }
  TryNext(attempt, std::move(refusal));
}

void Placer::TryNext(Attempt& attempt, RefusalBook::Told refusal) {
  if (attempt.in_gang) return GangRefused(attempt, refusal);
  GiveHoldsBack(attempt);
  FreeRoom(attempt.request);
  // Also if it was the host of one of its volumes: the decision knows no other way to leave that
  // out, and the pass comes to an end.
  const PoolIndex refused = attempt.candidate.pool;
  attempt.request.refused.push_back(refused);
  const std::string uid = attempt.uid;
  const ObjectRecord* record = objects_.Find(uid);
  if (attempt.is_given_up || !leadership_ || record == nullptr || !objects_.NeedsPlace(*record)) {
    attempts_.erase(uid);
    return TryLater(uid);
  }
  if (!refusals_.Add(*record, refused, std::move(refusal), loop_.Now())) attempt.is_stuck = true;
  DecideNext(attempt);
}

void Placer::GiveHoldsBack(Attempt& attempt) {
  for (const HostAsked& host : attempt.hosts) {
    // Of an offer without an answer there may be a hold as well; the fleet releases it when the
    // answer comes (S6), and a release that comes first does no harm.
    if (host.said != HostAsked::Said::kNo) fleet_.Release(host.pool_uid, host.offer);
  }
  attempt.hosts.clear();
}

}  // namespace berth::scheduler
