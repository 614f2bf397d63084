// SPDX-License-Identifier: Apache-2.0
// Defends: what a runtime says has happened is heard within a second, also when the runtime was
// away when it did.
#include "poollet/reconcile/runtime_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iri/labels.h"
#include "rt/sim/run_task.h"
#include "runtime/fake/fake_host.h"

namespace berth::poollet {
namespace {

class RuntimeWatchTest : public testing::Test, private RuntimeWatch::Listener {
 protected:
  enum class Flavor : uint8_t { kWithWatch, kForeign };

  RuntimeWatchTest() {
    iri::Machine machine;
    machine.metadata.labels[std::string(iri::kMachineUidLabel)] = "u-1";
    machine.spec.class_name = "small";
    machine.spec.power = iri::Power::kOn;
    const auto made =
        rt::RunTask(loop_, fake_.runtimes().machine->CreateMachine(std::move(machine)));
    CHECK(made.ok()) << made.status();
    id_ = made->metadata.id;
    loop_.RunFor(Duration::Minutes(1));  // it has booted
  }
  ~RuntimeWatchTest() override { EXPECT_TRUE(rt::RunTask(loop_, watch_.Close()).ok()); }

  void Watch(Flavor flavor) {
    RuntimeWatch::Watched watched;
    watched.driver = driver_.get();
    watched.host = flavor == Flavor::kWithWatch ? fake_.runtimes().host : nullptr;
    watched.cluster_id = "cluster";
    watch_.Start(watched);
  }
  void CrashGuest() { fake_.state().CrashGuest(fake_.clock(), id_); }
  // The runtime dies now, and its guest before it is back.
  void ComesBackWithACrashAfter(Duration away) {
    fake_.Crash();
    loop_.RunFor(away);
    CrashGuest();
    fake_.Restart(runtime::FakeHost::Memory::kKept);
  }
  bool HearsOfTheCrashWithin(Duration limit) {
    return loop_.RunUntil([this] { return std::ranges::count(heard_, "u-1 Crashed") == 1; }, limit);
  }

  rt::SimLoop loop_{1};
  runtime::FakeHost fake_{loop_,
                          std::make_shared<runtime::FakeHostState>(runtime::DefaultFakeHost(), 1)};
  std::vector<std::string> heard_;

 private:
  void Changed(fleet::ObjectKind, const std::string&) override {}
  void Scanned(fleet::ObjectKind, std::vector<Seen>) override {}
  void Happened(fleet::ObjectKind, const std::string& uid, iri::Event event) override {
    heard_.push_back(uid + " " + event.reason);
  }
  void HeardUntil(fleet::ObjectKind, WallTime) override {}

  std::string id_;
  const std::unique_ptr<Driver> driver_ =
      NewMachineDriver(*fake_.runtimes().machine, fake_.runtimes().host);
  RuntimeWatch watch_{loop_, *this, WatchOptions()};
};

TEST_F(RuntimeWatchTest, C12_WhatHappensWithAChangeIsHeardWithIt) {
  Watch(Flavor::kWithWatch);
  loop_.RunFor(Duration::Seconds(3));
  CrashGuest();
  fake_.Refresh();
  EXPECT_TRUE(HearsOfTheCrashWithin(Duration::Seconds(1)));
}

// The watch of its next life begins with a resync, which names nothing.
TEST_F(RuntimeWatchTest, WhatHappenedWhileTheRuntimeWasAwayIsHeardWhenItIsBack) {
  Watch(Flavor::kWithWatch);
  loop_.RunFor(Duration::Seconds(3));
  ComesBackWithACrashAfter(Duration::Seconds(1));
  EXPECT_TRUE(HearsOfTheCrashWithin(Duration::Seconds(1)));
}

TEST_F(RuntimeWatchTest, HoweverLongTheRuntimeWasAwayItIsHeardAtOnce) {
  Watch(Flavor::kWithWatch);
  loop_.RunFor(Duration::Seconds(3));
  ComesBackWithACrashAfter(Duration::Minutes(2));
  EXPECT_TRUE(HearsOfTheCrashWithin(Duration::Seconds(1)));
}

TEST_F(RuntimeWatchTest, WhatCouldNotBeAskedIsAskedAgainSoon) {
  fake_.Crash();
  Watch(Flavor::kForeign);
  ComesBackWithACrashAfter(Duration::Millis(50));
  EXPECT_TRUE(HearsOfTheCrashWithin(Duration::Seconds(1)));
}

TEST_F(RuntimeWatchTest, AfterALongAbsenceItIsAskedNoLaterThanIfItHadNeverFailed) {
  fake_.Crash();
  Watch(Flavor::kForeign);
  ComesBackWithACrashAfter(Duration::Minutes(5));
  EXPECT_TRUE(HearsOfTheCrashWithin(Duration::Seconds(11)));
}

}  // namespace
}  // namespace berth::poollet
