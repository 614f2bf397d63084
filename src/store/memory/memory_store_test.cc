// SPDX-License-Identifier: Apache-2.0
// The memory store keeps the whole contract, in virtual time, with random interleavings.
#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"
#include "store/memory/testing/memory_under_test.h"

namespace berth::store {
namespace {

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
