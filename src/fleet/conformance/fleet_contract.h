// SPDX-License-Identifier: Apache-2.0
// What every Fleet promises, as tests: the fake and the gateway keep the same contract.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/fleet.h"
#include "rt/sim/sim_loop.h"

namespace berth::fleet {

// A fresh fleet and hosts of one pool each, whose behaviour the contract decides.
class FleetUnderTest {
 public:
  virtual ~FleetUnderTest() = default;
  virtual rt::SimLoop& loop() = 0;
  virtual Fleet& fleet() = 0;

  // A host joins with one MachinePool of this name; the pool's UID, once it can be asked.
  virtual std::string Join(const std::string& name, const Vector& capacity) = 0;
  // The connection breaks.
  virtual void Leave(const std::string& pool_uid) = 0;
  // What the host says to offers from now on, and how long it takes; nullopt: nothing.
  virtual void Answers(const std::string& pool_uid,
                       std::optional<Answer> answer,
                       Duration delay) = 0;
  virtual void Report(const std::string& pool_uid, const Vector& allocated) = 0;
  // What has arrived at the host.
  virtual std::vector<OfferId> Offers(const std::string& pool_uid) = 0;
  virtual std::vector<OfferId> Releases(const std::string& pool_uid) = 0;
};
using FleetFactory = std::function<std::unique_ptr<FleetUnderTest>()>;

struct FleetContract {
  std::string_view name;
  void (*check)(FleetUnderTest& under_test);
};
inline std::ostream& operator<<(std::ostream& out, const FleetContract& contract) {
  return out << contract.name;
}

std::span<const FleetContract> FleetContracts();
// Checks one contract on a fresh fleet, with gtest's expectations.
void RunFleetContract(const FleetFactory& factory, const FleetContract& contract);

}  // namespace berth::fleet
