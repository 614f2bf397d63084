// SPDX-License-Identifier: Apache-2.0
// The fake keeps the contract of all runtimes, and every fault and lie that it offers is really
// one.
#include "runtime/fake/fake_host.h"

#include <gtest/gtest.h>

#include "iri/annotations.h"
#include "iri/conformance/blocking.h"
#include "iri/conformance/runtime_contract.h"
#include "iri/labels.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::runtime {
namespace {

FakeHostOptions Quick() {
  FakeHostOptions options = DefaultFakeHost();
  options.times.boot = Duration::Millis(40);
  options.times.shutdown = Duration::Millis(20);
  options.times.volume = Duration::Millis(10);
  options.times.snapshot = Duration::Millis(10);
  options.times.call_min = Duration::Micros(10);
  options.times.call_max = Duration::Micros(500);
  return options;
}

class FakeUnderTest final : public iri::RuntimeUnderTest {
 public:
  explicit FakeUnderTest(uint64_t seed, FakeHostOptions options = Quick())
      : loop_(seed),
        state_(std::make_shared<FakeHostState>(std::move(options), seed)),
        host_(std::make_unique<FakeHost>(loop_, state_)) {}

  iri::Runtimes runtimes() override { return host_->runtimes(); }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  void Pass(Duration duration) override { loop_.RunFor(duration); }
  Time Now() override { return loop_.Now(); }

  FakeHostState& state() { return *state_; }
  FakeHost& host() { return *host_; }
  rt::SimLoop& loop() { return loop_; }
  int Copies(std::string_view uid) { return state_->RunningCopies(host_->clock(), uid); }
  // The process is replaced by a new one on the same hardware.
  void Replace() {
    host_.reset();
    host_ = std::make_unique<FakeHost>(loop_, state_);
  }

 private:
  rt::SimLoop loop_;
  std::shared_ptr<FakeHostState> state_;
  std::unique_ptr<FakeHost> host_;
};

class FakeContract : public testing::TestWithParam<iri::RuntimeContract> {};
TEST_P(FakeContract, Holds) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    FakeUnderTest under_test(seed);
    GetParam().run(under_test);
  }
}
INSTANTIATE_TEST_SUITE_P(Fake,
                         FakeContract,
                         testing::ValuesIn(iri::RuntimeContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

class ForeignContract : public testing::TestWithParam<iri::RuntimeContract> {};
TEST_P(ForeignContract, Holds) {
  FakeHostOptions options = Quick();
  options.flavor = FakeFlavor::kForeign;
  FakeUnderTest under_test(1, options);
  GetParam().run(under_test);
}
INSTANTIATE_TEST_SUITE_P(Machines,
                         ForeignContract,
                         testing::ValuesIn(iri::MachineContracts().begin(),
                                           iri::MachineContracts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

using iri::Await;
using iri::NewMachine;

TEST(FakeHost, D15_AForeignRuntimeMakesASecondMachineAndHasNoExtension) {
  FakeHostOptions options = Quick();
  options.flavor = FakeFlavor::kForeign;
  FakeUnderTest t(1, options);
  EXPECT_EQ(t.runtimes().host, nullptr);
  const auto one = Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1")));
  const auto two = Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1")));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->metadata.id, two->metadata.id);
  EXPECT_EQ(t.Copies("u-1"), 2) << "what a checker must be able to see";
}

TEST(FakeHost, D15_ALostAnswerMeansAMachineAllTheSame) {
  FakeHostOptions options = Quick();
  options.faults.create_answer_lost = 1;
  FakeUnderTest t(1, options);
  const auto made = Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1")));
  EXPECT_EQ(made.status().reason(), Reason::kUnavailable);
  EXPECT_EQ(t.Copies("u-1"), 1);
}

TEST(FakeHost, AFailedCreateMakesNothing) {
  FakeHostOptions options = Quick();
  options.faults.create_fails = 1;
  FakeUnderTest t(1, options);
  EXPECT_FALSE(Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1"))).ok());
  EXPECT_TRUE(t.state().machines().empty());
  t.state().options().faults = FakeFaults();
  EXPECT_TRUE(Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1"))).ok());
}

TEST(FakeHost, ABootThatFailsEndsTerminatedAndCanBeRepeated) {
  FakeHostOptions options = Quick();
  options.faults.boot_fails = 1;
  FakeUnderTest t(1, options);
  const auto made = Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1")));
  ASSERT_TRUE(made.ok());
  const std::string id = made->metadata.id;
  EXPECT_TRUE(BecomesState(t, id, iri::MachineState::kTerminated));
  EXPECT_EQ(GetMachine(t, id)->status.conditions.at(0).reason, "BootFailed");
  EXPECT_EQ(t.Copies("u-1"), 0);
  t.state().options().faults.boot_fails = 0;
  EXPECT_EQ(Await(t, t.runtimes().machine->UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  EXPECT_TRUE(BecomesState(t, id, iri::MachineState::kRunning));
}

TEST(FakeHost, GuestsCrashAtTheirRate) {
  FakeHostOptions options = Quick();
  options.faults.crashes_per_hour = 60;
  FakeUnderTest t(1, options);
  const std::string id = Running(t, "u-1").metadata.id;
  t.Pass(Duration::Hours(1));
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kTerminated);
  EXPECT_EQ(t.Copies("u-1"), 0);
}

TEST(FakeHost, AStuckDeletionKeepsTheGuestAliveForAWhile) {
  FakeHostOptions options = Quick();
  options.faults.delete_sticks = 1;
  FakeUnderTest t(1, options);
  const std::string id = Running(t, "u-1").metadata.id;
  EXPECT_EQ(Await(t, t.runtimes().machine->DeleteMachine(id)), OkStatus());
  t.Pass(Duration::Seconds(30));
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kTerminating);
  EXPECT_EQ(t.Copies("u-1"), 1);
  t.Pass(Duration::Seconds(31));
  EXPECT_FALSE(GetMachine(t, id).has_value());
  EXPECT_EQ(t.Copies("u-1"), 0);
}

TEST(FakeHost, LiesAreSaidAndTheTruthIsKept) {
  FakeUnderTest t(1);
  const std::string id = Running(t, "u-1").metadata.id;
  const int64_t cpu = Await(t, t.runtimes().host->Capacity())->total["cpu"];
  FakeLies& lies = t.state().options().lies;
  lies.capacity_factor = 2;
  EXPECT_EQ(Await(t, t.runtimes().host->Capacity())->total["cpu"], 2 * cpu);
  lies.reports_running = true;
  t.state().CrashGuest(t.host().clock(), id);
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kRunning);
  EXPECT_EQ(t.Copies("u-1"), 0);
  lies.list_omits = 1;
  EXPECT_FALSE(GetMachine(t, id).has_value());
  lies = FakeLies();
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kTerminated);
  lies.creates_duplicates = true;
  ASSERT_TRUE(Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1"))).ok());
  EXPECT_EQ(t.state().machines().size(), 2U);
}

TEST(FakeHost, AcceptsBeyondItsCapacityOnlyAsALie) {
  FakeHostOptions options = Quick();
  options.capacity["cpu"] = 1000;
  FakeUnderTest t(1, options);
  iri::MachineRuntime& machines = *t.runtimes().machine;
  ASSERT_TRUE(Await(t, machines.CreateMachine(NewMachine(t, "u-1"))).ok());
  const auto full = Await(t, machines.CreateMachine(NewMachine(t, "u-2")));
  EXPECT_EQ(full.status(),
            Status(Reason::kTooManyRequests, "no room: cpu 1000 wanted, 0 of 1000 free"));
  t.state().options().lies.accepts_everything = true;
  EXPECT_TRUE(Await(t, machines.CreateMachine(NewMachine(t, "u-2"))).ok());
  EXPECT_EQ(t.state().Used()["cpu"], 2000) << "a checker sees that the host is over its capacity";
}

TEST(FakeHost, ARuntimeThatIgnoresLeasesKillsNobody) {
  FakeUnderTest t(1);
  t.state().options().lies.ignores_leases = true;
  Running(t, "u-1");
  iri::LeaseRenewal renewal;
  renewal.deadline = t.Now() + Duration::Millis(10);
  renewal.machine_uids = {"u-1"};
  ASSERT_TRUE(Await(t, t.runtimes().host->RenewLease(renewal)).ok());
  t.Pass(Duration::Minutes(1));
  EXPECT_EQ(t.Copies("u-1"), 1);
}

rt::Task<Status> CreateInto(iri::MachineRuntime* runtime, iri::Machine machine, Status* out) {
  const auto made = co_await runtime->CreateMachine(std::move(machine));
  *out = made.status();
  co_return OkStatus();
}

TEST(FakeHost, AProcessThatDiesEndsItsCallsAndKeepsItsGuests) {
  FakeHostOptions options = Quick();
  options.times.call_min = options.times.call_max = Duration::Millis(10);
  FakeUnderTest t(1, options);
  const iri::Machine wanted = NewMachine(t, "u-1");
  Status ended;
  rt::TaskScope scope(t.loop());
  scope.Spawn("create", CreateInto(t.runtimes().machine, wanted, &ended));
  t.Pass(Duration::Millis(15));  // made, the answer is on its way
  t.host().Crash();
  t.Pass(Duration::Millis(20));
  EXPECT_EQ(ended.reason(), Reason::kUnavailable);
  EXPECT_EQ(Await(t, t.runtimes().machine->Version()).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(t.Copies("u-1"), 1);
  t.host().Restart();
  EXPECT_EQ(Await(t, t.runtimes().machine->ListMachines(iri::ObjectFilter()))->size(), 1U);
  t.host().Restart(FakeHost::Memory::kLost);
  EXPECT_TRUE(Await(t, t.runtimes().machine->ListMachines(iri::ObjectFilter()))->empty());
  EXPECT_EQ(t.Copies("u-1"), 0);
}

TEST(FakeHost, AWatchEndsWithItsProcessAndTheNextOneResyncs) {
  FakeUnderTest t(1);
  auto stream = *Await(t, t.runtimes().host->Watch(""));
  const iri::Change resync = *Await(t, stream->Next());
  Running(t, "u-1");
  const iri::Change created = *Await(t, stream->Next());
  t.host().Crash();
  EXPECT_EQ(Await(t, stream->Next()).status().reason(), Reason::kUnavailable);
  t.host().Restart();
  EXPECT_EQ(Await(t, stream->Next()).status().reason(), Reason::kUnavailable);
  stream = *Await(t, t.runtimes().host->Watch(created.cursor));
  EXPECT_EQ(Await(t, stream->Next())->type, iri::ChangeType::kResync);
  EXPECT_NE(resync.cursor, created.cursor);
}

TEST(FakeHost, AWatcherThatFallsBehindIsToldToResync) {
  FakeUnderTest t(1);
  auto stream = *Await(t, t.runtimes().host->Watch(""));
  ASSERT_TRUE(Await(t, stream->Next()).ok());
  const std::string id = Running(t, "u-1").metadata.id;
  for (size_t i = 0; i <= kFakeChangesMax; ++i) {
    const iri::StringMap annotations = {{"n", std::to_string(i)}};
    ASSERT_EQ(t.state().SetAnnotations(t.host().clock(), id, annotations), OkStatus());
  }
  EXPECT_EQ(Await(t, stream->Next())->type, iri::ChangeType::kResync);
}

TEST(FakeHost, GuestsDieWithTheirHostAndObjectsStay) {
  FakeUnderTest t(1);
  const std::string id = Running(t, "u-1").metadata.id;
  const std::string boot = Await(t, t.runtimes().host->Capacity())->boot_id;
  t.state().PowerCut(t.host().clock());
  t.host().Refresh();
  EXPECT_EQ(t.Copies("u-1"), 0);
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kTerminated);
  EXPECT_NE(Await(t, t.runtimes().host->Capacity())->boot_id, boot);
}

TEST(FakeHost, P9_AfterAPowerCutAMachineWaitsForItsIgnition) {
  FakeUnderTest t(1);
  iri::Machine wanted = iri::NewMachine(t, "u-1");
  wanted.spec.ignition_data = "secret";
  const std::string id = Await(t, t.runtimes().machine->CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(BecomesState(t, id, iri::MachineState::kRunning));
  t.state().PowerCut(t.host().clock());
  EXPECT_EQ(GetMachine(t, id)->spec.ignition_data, "");
  ASSERT_EQ(Await(t, t.runtimes().machine->UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kPending);
  EXPECT_EQ(GetMachine(t, id)->status.conditions.at(0).reason, iri::kSecretsMissingReason);
  EXPECT_EQ(t.Copies("u-1"), 0);
  iri::Ignition again{.machine_uid = "u-1", .data = "secret"};
  ASSERT_EQ(Await(t, t.runtimes().host->SetIgnition(again)), OkStatus());
  EXPECT_TRUE(BecomesState(t, id, iri::MachineState::kRunning));
  EXPECT_TRUE(GetMachine(t, id)->status.conditions.empty());
}

// The fencer outlives the runtime: nobody needs to ask for the kill to happen.
TEST(FakeHost, R3_3_2_KillsAtTheDeadlineWhileTheRuntimeIsDead) {
  FakeUnderTest t(1);
  Running(t, "u-1");
  iri::LeaseRenewal renewal;
  renewal.deadline = t.Now() + Duration::Seconds(8);
  renewal.machine_uids = {"u-1"};
  ASSERT_TRUE(Await(t, t.runtimes().host->RenewLease(renewal)).ok());
  t.host().Crash();
  t.Pass(Duration::Millis(7900));
  EXPECT_EQ(t.Copies("u-1"), 1);
  t.Pass(Duration::Millis(200));
  EXPECT_EQ(t.Copies("u-1"), 0);
  t.Replace();
  EXPECT_EQ(Await(t, t.runtimes().machine->ListMachines(iri::ObjectFilter()))->at(0).status.state,
            iri::MachineState::kTerminated);
}

TEST(FakeHost, AGuestMayShutItselfDownAndStaysOff) {
  FakeUnderTest t(1);
  const std::string id = Running(t, "u-1").metadata.id;
  t.state().ShutDownGuestFromInside(t.host().clock(), id);
  t.Pass(Duration::Minutes(1));
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kStopped);
  EXPECT_EQ(GetMachine(t, id)->spec.power, iri::Power::kOn);
}

TEST(FakeHost, SwitchingOnWhileItGoesDownBootsItAgain) {
  FakeUnderTest t(1);
  const std::string id = Running(t, "u-1").metadata.id;
  iri::MachineRuntime& machines = *t.runtimes().machine;
  EXPECT_EQ(Await(t, machines.UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  EXPECT_EQ(Await(t, machines.UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  t.Pass(Duration::Seconds(1));
  EXPECT_EQ(GetMachine(t, id)->status.state, iri::MachineState::kRunning);
}

TEST(FakeHost, TheSameSeedGivesTheSameRun) {
  const auto run = [](uint64_t seed) {
    FakeHostOptions options = Quick();
    options.faults.create_fails = 0.3;
    options.faults.boot_fails = 0.3;
    FakeUnderTest t(seed, options);
    for (int i = 0; i < 5; ++i) {
      const auto made =
          Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, std::to_string(i))));
      static_cast<void>(made.ok());
    }
    t.Pass(Duration::Seconds(1));
    return t.loop().trace_hash();
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace berth::runtime
