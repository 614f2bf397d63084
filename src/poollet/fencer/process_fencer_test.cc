// SPDX-License-Identifier: Apache-2.0
// A real fencer process, real guests, and deaths of everybody else.
#include "poollet/fencer/process_fencer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "iri/labels.h"
#include "poollet/fencer/fencer_process.h"
#include "rt/asio/asio_loop.h"
#include "rt/sleep.h"
#include "runtime/fake/fake_host.h"

namespace berth::poollet {
namespace {

constexpr Duration kPatience = Duration::Seconds(20);

runtime::FakeHostOptions WithProcesses() {
  runtime::FakeHostOptions options = runtime::DefaultFakeHost();
  options.guests = runtime::FakeGuests::kProcesses;
  options.times.boot = Duration::Millis(10);
  options.times.shutdown = Duration::Millis(10);
  return options;
}

rt::Task<Status> Poll(std::function<bool()> done, Duration limit) {
  rt::Loop& loop = (co_await rt::CurrentContext()).loop();
  const Time give_up = loop.Now() + limit;
  while (!done()) {
    if (loop.Now() > give_up) co_return Timeout("it did not happen");
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  }
  co_return OkStatus();
}

class OneHost {
 public:
  OneHost()
      : folder_(MakeFolder()),
        state_(std::make_shared<runtime::FakeHostState>(WithProcesses(), 1)),
        host_(loop_, state_) {
    Connect();
  }
  ~OneHost() {
    Disconnect();
    KillFencer();
    std::filesystem::remove_all(folder_);
  }

  void Connect() {
    fencer_ = std::make_unique<ProcessFencer>(
        loop_, *host_.runtimes().host, folder_, [this] { return Fork(); });
    fencer_->Start();
  }
  // As if the poollet had died.
  void Disconnect() {
    if (fencer_ == nullptr) return;
    EXPECT_EQ(rt::RunTask(loop_, fencer_->Close()), OkStatus());
    fencer_.reset();
  }
  void KillFencer() const {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // From the next one on, a fencer has so many descriptors and no more.
  void LimitFencers(rlim_t descriptors) { descriptors_ = descriptors; }
  // The one that lives has as many as we have.
  void LiftLimit() const {
    rlimit limit = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_EQ(prlimit(pid_, RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  Result<std::vector<iri::LeaseState>> TryRenew(Duration lease, std::vector<std::string> uids) {
    iri::LeaseRenewal renewal;
    renewal.deadline = loop_.Now() + lease;
    renewal.machine_uids = std::move(uids);
    return rt::RunTask(loop_, fencer_->Renew(std::move(renewal)));
  }
  std::vector<iri::LeaseState> Renew(Duration lease, std::vector<std::string> uids) {
    auto states = TryRenew(lease, std::move(uids));
    EXPECT_TRUE(states.ok()) << states.status();
    return states.ok() ? *states : std::vector<iri::LeaseState>();
  }
  void Create(const std::string& uid, bool moves) {
    iri::Machine machine;
    machine.metadata.labels = {{std::string(iri::kMachineUidLabel), uid}};
    if (moves) {
      machine.metadata.annotations = {
          {std::string(iri::kOnPoolLossAnnotation), std::string(iri::kOnPoolLossMove)}};
    }
    machine.spec.class_name = "small";
    const auto made = rt::RunTask(loop_, host_.runtimes().machine->CreateMachine(machine));
    ASSERT_TRUE(made.ok()) << made.status();
    fencer_->GuestsChanged();
  }
  const runtime::FakeGuest& GuestOf(const std::string& uid) {
    for (const auto& [id, machine] : state_->machines()) {
      if (iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel) == uid) return machine.guest;
    }
    ADD_FAILURE() << "no machine " << uid;
    static const runtime::FakeGuest kNone;
    return kNone;
  }
  bool Runs(const std::string& uid) {
    return GuestOf(uid).phase == runtime::FakeGuest::Phase::kRunning;
  }
  bool Until(std::function<bool()> done) {
    return rt::RunTask(loop_, Poll(std::move(done), kPatience)).ok();
  }
  std::string FencedLog() const {
    std::ifstream file(folder_ + "/" + std::string(kFencedLog));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  pid_t pid() const { return pid_; }
  int launches() const { return launches_; }
  const std::string& folder() const { return folder_; }
  Time Now() const { return loop_.Now(); }

 private:
  static std::string MakeFolder() {
    std::string folder = testing::TempDir() + "berth-fencer-XXXXXX";
    return mkdtemp(folder.data());
  }
  Status Fork() {
    ++launches_;
    pid_ = fork();
    if (pid_ != 0) return OkStatus();
    setsid();
    if (descriptors_ > 0) {
      close_range(STDERR_FILENO + 1, ~0U, 0);
      rlimit limit = {};
      getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = descriptors_;  // to be lifted later, also without privileges
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    const Status ended = RunFencer(folder_);
    _exit(ended.ok() ? 0 : 1);
  }

  const std::string folder_;
  rt::AsioLoop loop_;
  pid_t pid_ = 0;
  int launches_ = 0;
  rlim_t descriptors_ = 0;  // 0: as many as we have
  std::shared_ptr<runtime::FakeHostState> state_;
  runtime::FakeHost host_;
  std::unique_ptr<ProcessFencer> fencer_;
};

TEST(ProcessFencer, R3_3_AMoveGuestWaitsUntilTheFencerHasItAndDiesAtItsDeadline) {
  OneHost host;
  host.Create("keeps", false);
  host.Create("moves", true);
  ASSERT_TRUE(host.Until([&] { return host.Runs("keeps"); }));
  EXPECT_TRUE(host.GuestOf("moves").held) << "without a lease nothing of it runs";
  const Time deadline = host.Now() + Duration::Seconds(3);
  host.Renew(Duration::Seconds(3), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("moves"); }));
  ASSERT_TRUE(host.Until([&] { return !host.GuestOf("moves").alive(); }));
  EXPECT_GE(host.Now(), deadline) << "not before";
  EXPECT_EQ(host.GuestOf("moves").why, "Killed");
  EXPECT_TRUE(host.Runs("keeps"));
  ASSERT_TRUE(host.Until([&] { return host.FencedLog().starts_with("fenced moves "); }));
  const auto states = host.Renew(Duration::Seconds(60), {"moves"});
  ASSERT_EQ(states.size(), 1U);
  EXPECT_TRUE(states[0].fenced) << "what has run out is not revived by a grant";
}

TEST(ProcessFencer, R3_3_TheFencerOutlivesThePoolletAndKillsWithoutIt) {
  OneHost host;
  host.Create("moves", true);
  host.Create("keeps", false);
  host.Renew(Duration::Seconds(3), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("moves") && host.Runs("keeps"); }));
  host.Disconnect();
  ASSERT_TRUE(host.Until([&] { return !host.GuestOf("moves").alive(); }));
  EXPECT_TRUE(host.Runs("keeps"));
  // The next poollet finds the same fencer, and what it did.
  host.Connect();
  const auto states = host.Renew(Duration(), {});
  EXPECT_EQ(host.launches(), 1);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_TRUE(states[0].fenced);
}

TEST(ProcessFencer, R3_3_AKilledFencerIsStartedAgainAtOnceAndKnowsTheDeadlines) {
  OneHost host;
  host.Create("moves", true);
  host.Renew(Duration::Seconds(6), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("moves"); }));
  host.KillFencer();
  ASSERT_TRUE(host.Until([&] { return host.launches() == 2; }));
  const auto states = host.Renew(Duration(), {});
  ASSERT_EQ(states.size(), 1U);
  EXPECT_FALSE(states[0].fenced);
  ASSERT_TRUE(host.Until([&] { return !host.GuestOf("moves").alive(); }));
}

TEST(ProcessFencer, R3_3_AFencerWithoutDescriptorsKillsAtTheDeadlineAllTheSame) {
  OneHost host;
  host.Create("moves", true);
  const Time deadline = host.Now() + Duration::Seconds(6);
  host.Renew(Duration::Seconds(6), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("moves"); }));
  // The next one has 0 to 2, its reserve, its lock, its socket and its timer: 7, and no handle.
  host.LimitFencers(7);
  host.KillFencer();
  ASSERT_TRUE(host.Until([&] { return host.launches() == 2; }));
  host.Disconnect();  // it has no descriptor for the poollet either
  ASSERT_TRUE(host.Until([&] { return !host.GuestOf("moves").alive(); }));
  EXPECT_GE(host.Now(), deadline) << "not before";
  EXPECT_EQ(host.GuestOf("moves").why, "Killed");
  // What it could not write down then, it writes when it can.
  const Time later = host.Now() + Duration::Seconds(1);
  ASSERT_TRUE(host.Until([&] { return host.Now() > later; }));
  EXPECT_EQ(host.FencedLog(), "");
  host.LiftLimit();
  ASSERT_TRUE(host.Until([&] { return host.FencedLog().ends_with('\n'); }));
  EXPECT_TRUE(host.FencedLog().starts_with("fenced moves ")) << host.FencedLog();
}

TEST(ProcessFencer, R3_3_WhatItHasKilledIsWrittenOnceTheLogCanBe) {
  OneHost host;
  const std::string log = host.folder() + "/" + std::string(kFencedLog);
  ASSERT_TRUE(std::filesystem::create_directory(log));  // not to be written, even by root
  for (const std::string uid : {"a", "b"}) host.Create(uid, true);
  host.Renew(Duration::Seconds(3), {"a", "b"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("a") && host.Runs("b"); }));
  const auto fenced = [&host] {
    const auto states = host.Renew(Duration(), {});
    return std::ranges::count_if(states, &iri::LeaseState::fenced) == 2;
  };
  ASSERT_TRUE(host.Until([&] { return !host.GuestOf("a").alive() && !host.GuestOf("b").alive(); }));
  const Time later = host.Now() + Duration::Millis(500);
  ASSERT_TRUE(host.Until([&] { return host.Now() > later; }));
  EXPECT_TRUE(fenced());
  std::filesystem::remove(log);
  const auto lines = [&] { return std::ranges::count(host.FencedLog(), '\n'); };
  ASSERT_TRUE(host.Until([&] { return lines() == 2; }));
  EXPECT_TRUE(fenced());
  EXPECT_EQ(lines(), 2) << "each once";
}

TEST(ProcessFencer, R3_3_WhatTheFencerCannotWriteDownDoesNotRun) {
  OneHost host;
  host.Create("moves", true);
  host.Renew(Duration(), {});
  const std::string draft = host.folder() + "/fencer.state.new";
  ASSERT_TRUE(std::filesystem::create_directory(draft));  // not to be written, even by root
  const auto refused = host.TryRenew(Duration::Seconds(60), {"moves"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(draft), std::string::npos) << refused.status();
  EXPECT_FALSE(host.TryRenew(Duration::Seconds(60), {"moves"}).ok()) << "still unsaved";
  EXPECT_TRUE(host.GuestOf("moves").held);
  std::filesystem::remove(draft);
  host.Renew(Duration::Seconds(60), {"moves"});
  EXPECT_TRUE(host.Until([&] { return host.Runs("moves"); }));
}

TEST(ProcessFencer, R3_3_ARenewedGuestLivesOn) {
  OneHost host;
  host.Create("moves", true);
  const Time later = host.Now() + Duration::Millis(3500);
  host.Renew(Duration::Seconds(3), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Runs("moves"); }));
  host.Renew(Duration::Seconds(60), {"moves"});
  ASSERT_TRUE(host.Until([&] { return host.Now() > later; }));
  EXPECT_TRUE(host.Runs("moves"));
}

TEST(ProcessFencer, R9_TheSocketIsForItsOwnerOnly) {
  OneHost host;
  host.Renew(Duration(), {});
  struct stat socket = {};
  ASSERT_EQ(stat((host.folder() + "/" + std::string(kFencerSocket)).c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777, 0600U);
  struct stat folder = {};
  ASSERT_EQ(stat(host.folder().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0077, 0U);
}

}  // namespace
}  // namespace berth::poollet
