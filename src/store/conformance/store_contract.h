// SPDX-License-Identifier: Apache-2.0
// What every Store promises (the sentences of store/store.h), as functions that every body passes,
// with two handles on one store. Uses gtest expectations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::store {

// An empty store and the way to run tasks on it.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual rt::Loop& loop() = 0;
  virtual Status Run(rt::Task<Status> task) = 0;
  // Lets time pass on the loop. REQUIRES: the body has a virtual clock.
  virtual void Pass(Duration duration) = 0;

  // Two handles on the same store.
  virtual Store& first() = 0;
  virtual Store& second() = 0;
  // True if the store is a process of its own, which answers its two clients in an order of its
  // own.
  virtual bool is_remote() const { return false; }
  // Closes the store; the handles stay.
  virtual Status Close() = 0;
  // Closes the store if it is open, and opens it again on what it left. Old handles are gone.
  virtual void Reopen() = 0;
};
using StoreFactory = std::function<std::unique_ptr<StoreUnderTest>()>;

enum class Clock : uint8_t { kAny, kVirtual };

struct StoreContract {
  const char* name;
  void (*run)(StoreUnderTest&);
  Clock clock = Clock::kAny;  // kVirtual: it needs Pass()
};

std::span<const StoreContract> TxnContracts();
std::span<const StoreContract> RangeContracts();
std::span<const StoreContract> WatchContracts();
std::span<const StoreContract> LeaseContracts();
// All of the above.
std::vector<StoreContract> StoreContracts();

// Random operations from a seed give the same answers as a simple model, on all revisions that are
// not compacted, and watches replay the same history. Reopens the store now and then.
void RandomOperationsMatchTheModel(StoreUnderTest& under_test, uint64_t seed, int operations);

// Runs one contract on a new store.
void RunStoreContract(const StoreFactory& factory, const StoreContract& contract);

}  // namespace berth::store
