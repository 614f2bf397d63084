// SPDX-License-Identifier: Apache-2.0
// The gateway as the scheduler and the controllers see it.
#include "gateway/gateway.h"

namespace berth::gateway {
namespace {

using fleet::FleetEvent;

bool CanBeAsked(const Session* session) {
  return session != nullptr && session->phase == Session::Phase::kSynced && !session->ended() &&
         !session->said_goodbye && !session->is_draining;
}

}  // namespace

void Gateway::Ask(fleet::Offer offer,
                  Duration answer_limit,
                  std::function<void(fleet::Answer)> done) {
  Session* session = table_.OfPool(offer.item.pool_uid);
  bool is_askable = CanBeAsked(session) && health_.IsReachable(offer.item.pool_uid);
  is_askable = is_askable && session->pools.at(offer.item.pool_uid).problem.empty();
  for (const fleet::OfferItem& item : offer.joint) {
    is_askable = is_askable && session->pools.contains(item.pool_uid);
  }
  const fleet::OfferId id = offer.id;
  bool is_open = settlement_.IsOpen(offer.item.uid);
  for (const fleet::OfferItem& item : offer.joint) {
    is_open = is_open || settlement_.IsOpen(item.uid);
  }
  if (is_open) {
    // A host that is not heard yet may run it.
    fleet::Answer answer{.id = id, .verdict = fleet::Answer::Verdict::kRejected};
    answer.reason = "NotSettled";
    const std::string awaited = settlement_.Awaited();
    answer.message = "the store was restored, and " +
                     (awaited.empty() ? std::string("a host that runs it has no pool")
                                      : "these pools were not heard since: " + awaited);
    deps_.loop.Post("gateway.no_answer",
                    [answer = std::move(answer), done = std::move(done)] { done(answer); });
    return;
  }
  if (!is_askable) {
    deps_.loop.Post("gateway.no_answer", [id, done = std::move(done)] {
      done(fleet::Answer{.id = id, .reason = "NoSession"});
    });
    return;
  }
  const Time deadline = deps_.loop.Now() + answer_limit;
  auto replaced = asks_.Add(id, session->number(), deadline, std::move(done));
  if (replaced) {
    std::vector<AskBook::Ended> ended;
    ended.push_back({id, *std::move(replaced)});
    FinishAsks(std::move(ended), "AskedAgain");
  }
  ++session->offers_open;
  *session->Queue().add_offers() = ToProto(offer);
  // A timer that comes too early looks again; only an earlier deadline needs a new one.
  if (!asks_due_ || deadline < *asks_due_) ExpireAsksAt(deadline);
}

void Gateway::ExpireAsksAt(Time due) {
  deps_.loop.CancelTimer(asks_timer_);
  asks_due_ = due;
  asks_timer_ = deps_.loop.After("gateway.asks", due - deps_.loop.Now(), [this] { ExpireAsks(); });
}

void Gateway::ExpireAsks() {
  asks_due_.reset();
  FinishAsks(asks_.Expire(deps_.loop.Now()), "Timeout");
  if (const std::optional<Time> next = asks_.next_deadline()) ExpireAsksAt(*next);
}

void Gateway::FinishAsks(std::vector<AskBook::Ended> ended, const std::string& reason) {
  for (AskBook::Ended& one : ended) {
    deps_.loop.Post("gateway.no_answer", [id = one.id, reason, done = std::move(one.done)] {
      done(fleet::Answer{.id = id, .reason = reason});
    });
  }
}

void Gateway::Release(const std::string& pool_uid, fleet::OfferId offer) {
  Session* session = table_.OfPool(pool_uid);
  if (session == nullptr) return;
  agent::OfferId& release = *session->Queue().add_releases();
  release.set_term(offer.term);
  release.set_number(offer.number);
}

std::vector<fleet::PoolFacts> Gateway::Pools() const {
  std::vector<fleet::PoolFacts> pools;
  for (const auto& [host, session] : table_.hosts()) {
    if (!CanBeAsked(session)) continue;
    for (const auto& [uid, pool] : session->pools) {
      if (pool.problem.empty() && health_.IsReachable(uid)) pools.push_back(pool.facts);
    }
  }
  return pools;
}

std::vector<fleet::PoolHealth> Gateway::Health() const { return health_.All(deps_.loop.Now()); }

fleet::PoolHealth Gateway::Fence(const std::string& pool_uid) {
  const fleet::PoolHealth health = health_.Fence(pool_uid, deps_.loop.Now());
  // What this session has confirmed counts no more: a host that is alive comes back on a new one
  // and must be confirmed there.
  if (Session* session = table_.OfPool(pool_uid)) {
    session->End({.reason = std::string(kFenced),
                  .message = "this session gets no more grants: connect again"});
    Leave(*session);
  }
  return health;
}

bool Gateway::ClaimMove(const std::string& uid, uint64_t placement) {
  if (settlement_.IsOpen(uid)) return false;  // invariant 5
  const DesiredEntry* entry = index_.Find(uid);
  const Session* session = entry == nullptr ? nullptr : table_.OfPool(entry->pool_uid);
  if (session != nullptr) {
    const auto item = session->items.find(uid);
    if (item != session->items.end() && item->second.is_confirmed &&
        item->second.placement == placement) {
      return false;
    }
  }
  claims_.insert({uid, placement});
  return true;
}

void Gateway::EndMove(const std::string& uid, uint64_t placement, fleet::MoveOutcome outcome) {
  const DesiredEntry* entry = index_.Find(uid);
  if (outcome == fleet::MoveOutcome::kCommitted) {
    // The claim stays until the index has seen the commit, unless it has already.
    if (entry == nullptr || entry->placement > placement) claims_.erase({uid, placement});
    return;
  }
  claims_.erase({uid, placement});
  if (entry == nullptr) return;
  Session* session = table_.OfPool(entry->pool_uid);
  if (session != nullptr && !entry->must_go()) MarkDirty(*session, uid, nullptr);
}

void Gateway::Cut(const std::string& host, const std::string& reason) {
  Session* session = table_.OfHost(host);
  if (session == nullptr) return;
  session->End({.reason = reason, .message = "the session was cut by the server"});
  Leave(*session);
}

rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Gateway::OpenTunnel(
    std::string pool_uid,
    std::string uid,
    uint64_t placement,
    std::string what,
    std::map<std::string, std::string> options) {
  Session* session = table_.OfPool(pool_uid);
  if (session == nullptr || session->phase != Session::Phase::kSynced) {
    co_return NotFound("pool " + pool_uid + " has no session");
  }
  const DesiredEntry* entry = MineAt(*session, uid, placement);
  if (entry == nullptr || entry->pool_uid != pool_uid) {
    co_return NotFound(uid + " is not on pool " + pool_uid + " at placement " +
                       std::to_string(placement));
  }
  const std::string host = session->host();
  const std::optional<std::string> ticket = tunnels_.Issue(host);
  if (!ticket) {
    co_return Status(Reason::kTooManyRequests,
                     "host " + host + " has " + std::to_string(kTunnelsMax) +
                         " tunnels already, which are the most");
  }
  agent::TunnelRequest& request = *session->Queue().add_tunnels();
  request.set_ticket(*ticket);
  request.set_uid(uid);
  request.set_placement(placement);
  request.set_what(what);
  for (const auto& [key, value] : options) (*request.mutable_options())[key] = value;
  co_return co_await tunnels_.Await(host, *ticket, kTunnelLimit);
}

std::vector<fleet::Statistics> Gateway::StatisticsOf(const std::string& pool_uid) const {
  std::vector<fleet::Statistics> all;
  const Session* session = table_.OfPool(pool_uid);
  if (session == nullptr) return all;
  for (const auto& [uid, statistics] : session->statistics) all.push_back(statistics);
  return all;
}

std::vector<fleet::Orphan> Gateway::OrphansOf(const std::string& pool_uid) const {
  std::vector<fleet::Orphan> all;
  const Session* session = table_.OfPool(pool_uid);
  if (session == nullptr) return all;
  const auto pool = session->pools.find(pool_uid);
  if (pool == session->pools.end()) return all;
  for (const agent::Orphan& orphan : session->orphans) {
    if (orphan.pool() != pool->second.face.name) continue;
    all.push_back({.kind = CleanText(orphan.kind(), kWordMax),
                   .uid = CleanText(orphan.uid(), kWordMax),
                   .namespace_ = CleanText(orphan.namespace_(), kWordMax),
                   .name = CleanText(orphan.name(), kWordMax * 2),
                   .state = CleanText(orphan.state(), kWordMax)});
  }
  return all;
}

void Gateway::TellPool(FleetEvent::Type type,
                       const Session::Pool& pool,
                       const std::string& reason) {
  FleetEvent event{.type = type, .pool_uid = pool.face.uid, .reason = reason};
  if (type == FleetEvent::Type::kJoined || type == FleetEvent::Type::kFacts) {
    event.facts = pool.facts;
  }
  hub_.Tell(event);
}

}  // namespace berth::gateway
