// SPDX-License-Identifier: Apache-2.0
// The memory store keeps the whole contract, in virtual time, with random interleavings.
#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"

namespace berth::store {
namespace {

class MemoryUnderTest final : public StoreUnderTest {
 public:
  explicit MemoryUnderTest(uint64_t seed) : loop_(seed) { Open(); }

  rt::Loop& loop() override { return loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  void Pass(Duration duration) override { loop_.RunFor(duration); }
  Store& first() override { return *first_; }
  Store& second() override { return *second_; }
  Status Close() override { return Run(store_->Close()); }
  void Reopen() override {
    CHECK(Close().ok());
    Open();
  }

 private:
  void Open() {
    store_ = MemoryStore::Open(loop_, disk_);
    first_ = store_->NewHandle();
    second_ = store_->NewHandle();
  }

  rt::SimLoop loop_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<Store> first_;
  std::unique_ptr<Store> second_;
};

class MemoryStoreContract : public testing::TestWithParam<StoreContract> {};

TEST_P(MemoryStoreContract, Holds) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    RunStoreContract([seed] { return std::make_unique<MemoryUnderTest>(seed); }, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Memory,
                         MemoryStoreContract,
                         testing::ValuesIn(StoreContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MemoryStore, MatchesTheModelForManySeeds) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    MemoryUnderTest under_test(seed);
    RandomOperationsMatchTheModel(under_test, seed, 150);
  }
}

}  // namespace
}  // namespace berth::store
