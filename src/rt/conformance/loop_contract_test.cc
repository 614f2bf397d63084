// SPDX-License-Identifier: Apache-2.0
// Both bodies of Loop keep the contract; the simulated one with several seeds.
#include "rt/conformance/loop_contract.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rt/asio/asio_loop.h"
#include "rt/asio/loop_thread.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::rt {
namespace {

class OnSim final : public LoopUnderTest {
 public:
  explicit OnSim(uint64_t seed) : loop_(seed) {}
  Loop& loop() override { return loop_; }
  Status Run(Task<Status> task) override { return RunTask(loop_, std::move(task)); }

 private:
  SimLoop loop_;
};

class OnAsio final : public LoopUnderTest {
 public:
  Loop& loop() override { return loop_; }
  Status Run(Task<Status> task) override { return RunTask(loop_, std::move(task)); }

 private:
  AsioLoop loop_;
};

class OnThread final : public LoopUnderTest {
 public:
  Loop& loop() override { return thread_.loop(); }
  Status Run(Task<Status> task) override { return thread_.Await(std::move(task)); }

 private:
  LoopThread thread_{"contract"};
};

class LoopContractTest : public testing::TestWithParam<LoopContract> {};

TEST_P(LoopContractTest, HoldsOnSimLoop) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OnSim sim(seed);
    GetParam().run(sim);
  }
}

TEST_P(LoopContractTest, HoldsOnAsioLoop) {
  OnAsio loop;
  GetParam().run(loop);
}

TEST_P(LoopContractTest, HoldsOnALoopThread) {
  OnThread loop;
  GetParam().run(loop);
}

INSTANTIATE_TEST_SUITE_P(All,
                         LoopContractTest,
                         testing::ValuesIn(LoopContracts().begin(), LoopContracts().end()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace berth::rt
