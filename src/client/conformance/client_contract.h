// SPDX-License-Identifier: Apache-2.0
// What every Client promises, as tests: the in-process one and the one over HTTPS keep the same
// contract.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>

#include "client/binder.h"
#include "client/client.h"
#include "rt/task.h"

namespace berth::client {

// A fresh server with the namespace "default", and a client of it.
class ClientUnderTest {
 public:
  virtual ~ClientUnderTest() = default;
  virtual Client& client() = 0;
  virtual Binder& binder() = 0;
  // Runs a task to its end.
  virtual Status Run(rt::Task<Status> task) = 0;
};
using ClientFactory = std::function<std::unique_ptr<ClientUnderTest>()>;

struct ClientContract {
  std::string_view name;
  void (*check)(ClientUnderTest& under_test);
};
inline std::ostream& operator<<(std::ostream& out, const ClientContract& contract) {
  return out << contract.name;
}

// The part of the contract that is about placements; binder_contract.cc.
void BindsOnceAndTellsWhyNot(ClientUnderTest& on);
void UnbindsWithProof(ClientUnderTest& on);
void CreatesAlreadyBound(ClientUnderTest& on);
void UsesReservations(ClientUnderTest& on);

std::span<const ClientContract> ClientContracts();
// Checks one contract on a fresh server, with gtest's expectations.
void RunClientContract(const ClientFactory& factory, const ClientContract& contract);

}  // namespace berth::client
