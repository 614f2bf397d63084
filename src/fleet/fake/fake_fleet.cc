// SPDX-License-Identifier: Apache-2.0
#include "fleet/fake/fake_fleet.h"

namespace berth::fleet {
namespace {

// What is written comes back through the guest's function.
class EchoTunnel final : public Tunnel {
 public:
  explicit EchoTunnel(FakeFleet::Guest guest) : guest_(std::move(guest)) {}

  rt::Task<Result<std::optional<TunnelFrame>>> Read() override {
    if (out_.empty()) co_return std::optional<TunnelFrame>();
    std::optional<TunnelFrame> frame(std::move(out_.front()));
    out_.pop_front();
    co_return frame;
  }
  rt::Task<Status> Write(TunnelFrame frame) override {
    if (closed_) co_return Unavailable("the tunnel is closed");
    std::string answer = guest_ ? guest_(frame.data) : frame.data;
    out_.push_back(TunnelFrame{.data = std::move(answer)});
    co_return OkStatus();
  }
  void Close() override { closed_ = true; }

 private:
  FakeFleet::Guest guest_;
  bool closed_ = false;
  std::deque<TunnelFrame> out_;
};

std::optional<Answer> AcceptEverything(const Offer&) {
  return Answer{.verdict = Answer::Verdict::kAccepted};
}

}  // namespace

FakeFleet::~FakeFleet() {
  *alive_ = false;
  for (auto& [id, pending] : pending_) loop_.CancelTimer(pending.limit);
}

void FakeFleet::Join(PoolFacts facts) {
  const std::string uid = facts.pool_uid;
  Pool& pool = pools_[uid];
  pool.connected = true;
  pool.fenced = false;
  pool.facts = facts;
  pool.confirmed.clear();
  pool.health = PoolHealth{.pool_uid = uid,
                           .contact = PoolHealth::Contact::kConnected,
                           .last_grant = loop_.Now(),
                           .lease = Duration::Seconds(8)};
  if (!pool.script) pool.script = AcceptEverything;
  hub_.Tell({.type = FleetEvent::Type::kJoined, .pool_uid = uid, .facts = std::move(facts)});
}

void FakeFleet::End(const std::string& pool_uid, const std::string& reason) {
  Pool& pool = pools_[pool_uid];
  if (!pool.connected) return;
  pool.connected = false;
  pool.confirmed.clear();
  pool.health.silent_since = loop_.Now();
  hub_.Tell({.type = FleetEvent::Type::kLeft, .pool_uid = pool_uid, .reason = reason});
  std::vector<OfferId> lost;
  for (const auto& [id, pending] : pending_) {
    if (pending.pool_uid == pool_uid) lost.push_back(id);
  }
  for (const OfferId id : lost) Finish(id, Answer{.id = id, .reason = reason});
}

void FakeFleet::Leave(const std::string& pool_uid, const std::string& reason) {
  pools_[pool_uid].health.contact = PoolHealth::Contact::kSilent;
  End(pool_uid, reason);
}

void FakeFleet::Goodbye(const std::string& pool_uid, Duration absence) {
  pools_[pool_uid].health.contact = PoolHealth::Contact::kAway;
  pools_[pool_uid].health.planned_until = loop_.Now() + absence;
  End(pool_uid, "Goodbye");
}

void FakeFleet::Answers(const std::string& pool_uid, Script script, Duration delay) {
  pools_[pool_uid].script = std::move(script);
  pools_[pool_uid].delay = delay;
}

void FakeFleet::Report(PoolFacts facts) {
  Pool& pool = pools_[facts.pool_uid];
  pool.facts = facts;
  if (!pool.connected) return;
  const std::string uid = facts.pool_uid;
  hub_.Tell({.type = FleetEvent::Type::kFacts, .pool_uid = uid, .facts = std::move(facts)});
}

void FakeFleet::Refuse(const std::string& pool_uid, const std::string& reason) {
  hub_.Tell({.type = FleetEvent::Type::kRefused, .pool_uid = pool_uid, .reason = reason});
}

bool FakeFleet::Confirm(const std::string& pool_uid, const std::string& uid, uint64_t placement) {
  if (claims_.contains({uid, placement})) return false;
  pools_[pool_uid].confirmed[uid] = placement;
  return true;
}

void FakeFleet::SetStatistics(const std::string& pool_uid, std::vector<Statistics> statistics) {
  pools_[pool_uid].statistics = std::move(statistics);
}

void FakeFleet::SetOrphans(const std::string& pool_uid, std::vector<Orphan> orphans) {
  pools_[pool_uid].orphans = std::move(orphans);
}

void FakeFleet::Ask(Offer offer, Duration answer_limit, std::function<void(Answer)> done) {
  const OfferId id = offer.id;
  const std::string uid = offer.item.pool_uid;
  const auto found = pools_.find(uid);
  const bool reachable = found != pools_.end() && found->second.connected;
  Pending pending{.pool_uid = uid, .done = std::move(done), .limit = {}};
  pending.limit = loop_.After("fake_fleet.limit",
                              reachable ? answer_limit : Duration(),
                              [this, id] { Finish(id, Answer{.id = id, .reason = "Timeout"}); });
  pending_[id] = std::move(pending);
  if (!reachable) return;
  found->second.offers.push_back(offer);
  std::optional<Answer> answer = found->second.script(offer);
  if (!answer) return;
  answer->id = id;
  loop_.After("fake_fleet.answer",
              found->second.delay,
              [this, alive = alive_, id, uid, answer = *std::move(answer)] {
                if (*alive) Deliver(id, uid, answer);
              });
}

void FakeFleet::Deliver(OfferId id, const std::string& pool_uid, Answer answer) {
  if (pending_.contains(id)) return Finish(id, std::move(answer));
  // S6: nobody waits for it any more.
  if (answer.verdict == Answer::Verdict::kAccepted) Release(pool_uid, id);
}

void FakeFleet::Finish(OfferId id, Answer answer) {
  auto node = pending_.extract(id);
  if (node.empty()) return;
  loop_.CancelTimer(node.mapped().limit);
  // Whoever ended the session may be in the middle of something: the answer comes in a later turn.
  loop_.Post("fake_fleet.done",
             [done = std::move(node.mapped().done), answer = std::move(answer)] { done(answer); });
}

void FakeFleet::Release(const std::string& pool_uid, OfferId offer) {
  Pool& pool = pools_[pool_uid];
  if (pool.connected) pool.releases.push_back(offer);
}

std::vector<PoolFacts> FakeFleet::Pools() const {
  std::vector<PoolFacts> pools;
  for (const auto& [uid, pool] : pools_) {
    if (pool.connected) pools.push_back(pool.facts);
  }
  return pools;
}

std::vector<PoolHealth> FakeFleet::Health() const {
  std::vector<PoolHealth> all;
  for (const auto& [uid, pool] : pools_) all.push_back(pool.health);
  return all;
}

PoolHealth FakeFleet::Fence(const std::string& pool_uid) {
  const auto found = pools_.find(pool_uid);
  if (found == pools_.end()) {
    return PoolHealth{.pool_uid = pool_uid, .silent_since = start_, .last_grant = start_};
  }
  found->second.fenced = true;
  return found->second.health;
}

bool FakeFleet::ClaimMove(const std::string& uid, uint64_t placement) {
  for (const auto& [pool_uid, pool] : pools_) {
    const auto found = pool.confirmed.find(uid);
    if (found != pool.confirmed.end() && found->second == placement) return false;
  }
  claims_.insert({uid, placement});
  return true;
}

void FakeFleet::EndMove(const std::string& uid, uint64_t placement, MoveOutcome outcome) {
  if (outcome == MoveOutcome::kAbandoned) claims_.erase({uid, placement});
}

void FakeFleet::Cut(const std::string& host, const std::string& reason) {
  cuts_.emplace_back(host, reason);
}

rt::Task<Result<std::unique_ptr<Tunnel>>> FakeFleet::OpenTunnel(
    std::string pool_uid, std::string, uint64_t, std::string, std::map<std::string, std::string>) {
  const auto found = pools_.find(pool_uid);
  if (found == pools_.end() || !found->second.connected) {
    co_return NotFound("pool " + pool_uid + " has no session");
  }
  co_return std::unique_ptr<Tunnel>(std::make_unique<EchoTunnel>(guest_));
}

std::vector<Statistics> FakeFleet::StatisticsOf(const std::string& pool_uid) const {
  const auto found = pools_.find(pool_uid);
  if (found == pools_.end() || !found->second.connected) return {};
  return found->second.statistics;
}

std::vector<Orphan> FakeFleet::OrphansOf(const std::string& pool_uid) const {
  const auto found = pools_.find(pool_uid);
  if (found == pools_.end() || !found->second.connected) return {};
  return found->second.orphans;
}

}  // namespace berth::fleet
