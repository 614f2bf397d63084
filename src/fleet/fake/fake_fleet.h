// SPDX-License-Identifier: Apache-2.0
// A FakeFleet is a Fleet without hosts: a test says which pools there are and what they answer. It
// passes fleet/conformance.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleet/fleet.h"
#include "fleet/watch_hub.h"
#include "rt/loop.h"

namespace berth::fleet {

class FakeFleet final : public Fleet {
 public:
  // What a pool says to an offer; nullopt: nothing, ever. The id is filled in.
  using Script = std::function<std::optional<Answer>(const Offer& offer)>;
  // Takes `data` that a test wrote into the tunnel; what it returns comes back as output.
  using Guest = std::function<std::string(const std::string& data)>;

  explicit FakeFleet(rt::Loop& loop) : loop_(loop), start_(loop.Now()) {}
  ~FakeFleet() override;

  // A pool joins, and accepts everything at once until Answers says otherwise.
  void Join(PoolFacts facts);
  // Its session ends. What was asked and not answered becomes kNoAnswer.
  void Leave(const std::string& pool_uid, const std::string& reason = "Lost");
  // The session ended with a goodbye: away, and expected back.
  void Goodbye(const std::string& pool_uid, Duration absence);
  void Answers(const std::string& pool_uid, Script script, Duration delay = {});
  void Report(PoolFacts facts);
  void Refuse(const std::string& pool_uid, const std::string& reason);
  // The host says that it has the uid at this placement; false if a move was claimed first.
  bool Confirm(const std::string& pool_uid, const std::string& uid, uint64_t placement);
  void SetGuest(Guest guest) { guest_ = std::move(guest); }
  void SetStatistics(const std::string& pool_uid, std::vector<Statistics> statistics);
  void SetOrphans(const std::string& pool_uid, std::vector<Orphan> orphans);

  // What the pool was asked and what was given back, in order.
  const std::vector<Offer>& offers(const std::string& pool_uid) { return pools_[pool_uid].offers; }
  const std::vector<OfferId>& releases(const std::string& pool_uid) {
    return pools_[pool_uid].releases;
  }
  const std::vector<std::pair<std::string, std::string>>& cuts() const { return cuts_; }
  bool fenced(const std::string& pool_uid) { return pools_[pool_uid].fenced; }

  void Ask(Offer offer, Duration answer_limit, std::function<void(Answer)> done) override;
  void Release(const std::string& pool_uid, OfferId offer) override;
  std::vector<PoolFacts> Pools() const override;
  std::unique_ptr<FleetWatch> Watch() override { return hub_.Watch(); }
  std::vector<PoolHealth> Health() const override;
  PoolHealth Fence(const std::string& pool_uid) override;
  bool ClaimMove(const std::string& uid, uint64_t placement) override;
  void EndMove(const std::string& uid, uint64_t placement, MoveOutcome outcome) override;
  void Cut(const std::string& host, const std::string& reason) override;
  rt::Task<Result<std::unique_ptr<Tunnel>>> OpenTunnel(
      std::string pool_uid,
      std::string uid,
      uint64_t placement,
      std::string what,
      std::map<std::string, std::string> options) override;
  std::vector<Statistics> StatisticsOf(const std::string& pool_uid) const override;
  std::vector<Orphan> OrphansOf(const std::string& pool_uid) const override;

 private:
  struct Pool {
    bool connected = false;
    bool fenced = false;
    PoolFacts facts;
    PoolHealth health;
    Script script;
    Duration delay;
    std::vector<Offer> offers;
    std::vector<OfferId> releases;
    std::vector<Statistics> statistics;
    std::vector<Orphan> orphans;
    std::map<std::string, uint64_t> confirmed;
  };
  struct Pending {
    std::string pool_uid;
    std::function<void(Answer)> done;
    rt::TimerId limit;
  };
  void Deliver(OfferId id, const std::string& pool_uid, Answer answer);
  void Finish(OfferId id, Answer answer);
  void End(const std::string& pool_uid, const std::string& reason);

  rt::Loop& loop_;
  const Time start_;
  std::map<std::string, Pool> pools_;
  std::map<OfferId, Pending> pending_;
  std::set<std::pair<std::string, uint64_t>> claims_;
  std::vector<std::pair<std::string, std::string>> cuts_;
  Guest guest_;
  WatchHub hub_;
  // Posted functions look here before they touch anything.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::fleet
