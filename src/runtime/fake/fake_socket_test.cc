// SPDX-License-Identifier: Apache-2.0
// The contract of all runtimes holds through gRPC on a socket just as it does without.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "iri/conformance/blocking.h"
#include "iri/conformance/runtime_contract.h"
#include "iri/grpc/client.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"
#include "rt/sleep.h"
#include "runtime/fake/fake_host.h"

namespace berth::runtime {
namespace {

FakeHostOptions Quick() {
  FakeHostOptions options = DefaultFakeHost();
  options.times.boot = Duration::Millis(10);
  options.times.shutdown = Duration::Millis(10);
  options.times.volume = Duration::Millis(5);
  options.times.snapshot = Duration::Millis(5);
  return options;
}

class SocketUnderTest final : public iri::RuntimeUnderTest {
 public:
  explicit SocketUnderTest(FakeHostOptions options = Quick())
      : state_(std::make_shared<FakeHostState>(std::move(options), 1)), host_(loop_, state_) {
    net::InitGrpcProcess();
    std::string folder = testing::TempDir() + "berth-fake-XXXXXX";
    folder_ = mkdtemp(folder.data());
    Serve();
    client_ = std::make_unique<iri::RuntimeClient>(loop_, path());
  }
  ~SocketUnderTest() override {
    client_.reset();
    StopServing();
    std::filesystem::remove_all(folder_);
  }

  iri::Runtimes runtimes() override {
    iri::Runtimes runtimes;
    runtimes.machine = &client_->machine();
    runtimes.volume = &client_->volume();
    runtimes.bucket = &client_->bucket();
    runtimes.host = &client_->host();
    return runtimes;
  }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  void Pass(Duration duration) override {
    const Status passed = rt::RunTask(loop_, rt::Sleep(duration));
    CHECK(passed.ok()) << passed;
  }
  Time Now() override { return loop_.Now(); }

  std::string path() const { return folder_ + "/iri.sock"; }
  iri::RuntimeClient& client() { return *client_; }
  void Serve() { server_ = *iri::RuntimeServer::Start(loop_, path(), host_.runtimes()); }
  void StopServing() {
    const Status stopped = rt::RunTask(loop_, server_->Stop(Duration::Seconds(5)));
    CHECK(stopped.ok()) << stopped;
    server_.reset();
  }
  rt::AsioLoop& loop() { return loop_; }

 private:
  rt::AsioLoop loop_;
  std::shared_ptr<FakeHostState> state_;
  FakeHost host_;
  std::string folder_;
  std::unique_ptr<iri::RuntimeServer> server_;
  std::unique_ptr<iri::RuntimeClient> client_;
};

class SocketContract : public testing::TestWithParam<iri::RuntimeContract> {};
TEST_P(SocketContract, Holds) {
  SocketUnderTest under_test;
  GetParam().run(under_test);
}
INSTANTIATE_TEST_SUITE_P(Grpc,
                         SocketContract,
                         testing::ValuesIn(iri::RuntimeContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

using iri::Await;

TEST(FakeSocket, SaysWhatItServes) {
  SocketUnderTest berth;
  const auto all = Await(berth, berth.client().Discover());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_NE(all->machine, nullptr);
  EXPECT_NE(all->volume, nullptr);
  EXPECT_NE(all->bucket, nullptr);
  EXPECT_NE(all->host, nullptr);
  FakeHostOptions options = Quick();
  options.flavor = FakeFlavor::kForeign;
  SocketUnderTest foreign(options);
  const auto some = Await(foreign, foreign.client().Discover());
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_NE(some->machine, nullptr);
  EXPECT_EQ(some->host, nullptr);
}

TEST(FakeSocket, AWatchEndsWhenTheServerStopsAndObjectsAreThereAfterwards) {
  SocketUnderTest t;
  const auto stream = *Await(t, t.runtimes().host->Watch(""));
  ASSERT_TRUE(Await(t, stream->Next()).ok());
  ASSERT_TRUE(Await(t, t.runtimes().machine->CreateMachine(NewMachine(t, "u-1"))).ok());
  t.StopServing();
  Status ended;
  while (ended.ok()) ended = Await(t, stream->Next()).status();
  EXPECT_FALSE(ended.ok());
  EXPECT_EQ(Await(t, stream->Close()), OkStatus());
  t.Serve();
  const auto listed = Await(t, t.runtimes().machine->ListMachines(iri::ObjectFilter()));
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->size(), 1U);
}

TEST(FakeSocket, OnlyItsOwnerMayUseIt) {
  const SocketUnderTest t;
  EXPECT_EQ(std::filesystem::status(t.path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(FakeSocket, TwoRuntimesDoNotShareASocket) {
  SocketUnderTest t;
  FakeHost other(t.loop(), std::make_shared<FakeHostState>(Quick(), 2));
  EXPECT_EQ(iri::RuntimeServer::Start(t.loop(), t.path(), other.runtimes()).status().reason(),
            Reason::kAlreadyExists);
}

// Root's is that of guests' files, too, whichever runtime makes it.
TEST(FakeSocket, ItsFolderIsClosedButForThoseWhoPassThroughRoots) {
  SocketUnderTest t;
  FakeHost other(t.loop(), std::make_shared<FakeHostState>(Quick(), 2));
  const std::string folder = std::filesystem::path(t.path()).parent_path().string() + "/made";
  auto server = iri::RuntimeServer::Start(t.loop(), folder + "/iri.sock", other.runtimes());
  ASSERT_TRUE(server.ok()) << server.status();
  using std::filesystem::perms;
  const perms pass = geteuid() == 0 ? perms::group_exec | perms::others_exec : perms::none;
  EXPECT_EQ(std::filesystem::status(folder).permissions(), perms::owner_all | pass);
  EXPECT_EQ(rt::RunTask(t.loop(), (*server)->Stop(Duration::Seconds(5))), OkStatus());
}

}  // namespace
}  // namespace berth::runtime
