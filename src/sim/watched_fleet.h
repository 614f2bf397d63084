// SPDX-License-Identifier: Apache-2.0
// The fleet as scheduler and controllers see it in a simulation: the gateway, and somebody who
// watches what is asked of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fleet/fleet.h"
#include "sim/moments.h"

namespace berth::sim {

class WatchedFleet final : public fleet::Fleet {
 public:
  // Both outlive this.
  WatchedFleet(fleet::Fleet& inner, Moments& moments) : inner_(inner), moments_(moments) {}

  // Offers without an answer.
  size_t asking() const { return asking_->size(); }

  void Ask(fleet::Offer offer,
           Duration answer_limit,
           std::function<void(fleet::Answer)> done) override;
  void Release(const std::string& pool_uid, fleet::OfferId offer) override {
    inner_.Release(pool_uid, offer);
  }
  std::vector<fleet::PoolFacts> Pools() const override { return inner_.Pools(); }
  std::unique_ptr<fleet::FleetWatch> Watch() override { return inner_.Watch(); }
  std::vector<fleet::PoolHealth> Health() const override { return inner_.Health(); }
  fleet::PoolHealth Fence(const std::string& pool_uid) override { return inner_.Fence(pool_uid); }
  bool ClaimMove(const std::string& uid, uint64_t placement) override;
  void EndMove(const std::string& uid, uint64_t placement, fleet::MoveOutcome outcome) override {
    inner_.EndMove(uid, placement, outcome);
  }
  void Cut(const std::string& host, const std::string& reason) override {
    inner_.Cut(host, reason);
  }
  rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> OpenTunnel(
      std::string pool_uid,
      std::string uid,
      uint64_t placement,
      std::string what,
      std::map<std::string, std::string> options) override {
    return inner_.OpenTunnel(
        std::move(pool_uid), std::move(uid), placement, std::move(what), std::move(options));
  }
  std::vector<fleet::Orphan> OrphansOf(const std::string& pool_uid) const override {
    return inner_.OrphansOf(pool_uid);
  }
  std::vector<fleet::Statistics> StatisticsOf(const std::string& pool_uid) const override {
    return inner_.StatisticsOf(pool_uid);
  }

 private:
  fleet::Fleet& inner_;
  Moments& moments_;
  // Answers may come after this is gone.
  std::shared_ptr<std::set<fleet::OfferId>> asking_ = std::make_shared<std::set<fleet::OfferId>>();
};

}  // namespace berth::sim
