// SPDX-License-Identifier: Apache-2.0
// Defends: every command does at a runtime what it says, shows it readably, and says what to do
// when it cannot.
#include "cli/iri/iri_command.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/session/program.h"
#include "cli/testing/fake_program.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/loop_thread.h"
#include "runtime/fake/fake_host.h"

namespace berth::cli {
namespace {

// A fake host behind a socket, on a loop of its own.
class Host {
 public:
  Host(const std::string& path, runtime::FakeHostOptions options) : thread_("runtime") {
    net::InitGrpcProcess();
    CHECK(thread_.Await(Start(path, std::move(options))).ok());
  }
  ~Host() { CHECK(thread_.Await(Stop()).ok()); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

 private:
  rt::Task<Status> Start(std::string path, runtime::FakeHostOptions options) {
    auto state = std::make_shared<runtime::FakeHostState>(std::move(options), 1);
    host_ = std::make_unique<runtime::FakeHost>(thread_.loop(), std::move(state));
    CO_TRY(server_, iri::RuntimeServer::Start(thread_.loop(), path, host_->runtimes()));
    co_return OkStatus();
  }
  rt::Task<Status> Stop() {
    CO_TRY_STATUS(co_await server_->Stop(Duration()));
    server_.reset();
    host_.reset();
    co_return OkStatus();
  }

  rt::LoopThread thread_;
  std::unique_ptr<runtime::FakeHost> host_;
  std::unique_ptr<iri::RuntimeServer> server_;
};

class IriCommandTest : public testing::Test {
 protected:
  void Serve(runtime::FakeFlavor flavor = runtime::FakeFlavor::kBerth) {
    runtime::FakeHostOptions options = runtime::DefaultFakeHost();
    options.flavor = flavor;
    options.times.boot = Duration();
    options.times.shutdown = Duration();
    options.times.volume = Duration();
    host_ = std::make_unique<Host>(path(), std::move(options));
  }
  std::string path() const { return program_.folder() + "/iri.sock"; }
  FakeProgram::Ended Run(std::vector<std::string> line, std::string_view in = "") {
    line.insert(line.begin(), "iri");
    line.push_back("--endpoint=unix:" + path());
    const std::array commands = {IriCommand()};
    const Command root{.name = "berth", .summary = "Berth", .children = commands};
    const auto entry = [&root](const std::vector<std::string>& words, Environment& environment) {
      return static_cast<int>(RunProgram(root, words, environment));
    };
    return program_.Run(entry, line, in);
  }
  // The id that `create` printed.
  std::string Create(const std::string& manifest) {
    const auto made = Run({"create", "-f", "-"}, manifest);
    EXPECT_EQ(made.code, 0) << made.err;
    const size_t begin = made.out.find(' ') + 1;
    return made.out.substr(begin, made.out.find(' ', begin) - begin);
  }

  FakeProgram program_;
  std::unique_ptr<Host> host_;
};

constexpr char kMachine[] =
    "kind: Machine\n"
    "metadata: {labels: {machinepoollet.ironcore.dev/machine-uid: u-1}}\n"
    "spec: {class: small, ignitionData: c2VjcmV0}\n";

TEST_F(IriCommandTest, ShowsWhoServesWhat) {
  Serve();
  const auto shown = Run({"version"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("machine.v1alpha1.MachineRuntime   berth-fake"), std::string::npos)
      << shown.out;
  EXPECT_NE(shown.out.find("berth.iri.v1.HostRuntime"), std::string::npos);
  const auto json = Run({"version", "-o", "json"});
  EXPECT_NE(json.out.find(R"("runtimeName": "berth-fake")"), std::string::npos) << json.out;
}

TEST_F(IriCommandTest, CreatesListsAndDeletesAMachine) {
  Serve();
  const std::string id = Create(kMachine);
  const auto table = Run({"machines"});
  EXPECT_NE(table.out.find(id), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("u-1"), std::string::npos);
  EXPECT_NE(table.out.find("Running"), std::string::npos) << table.out;
  const auto yaml = Run({"machines", id, "-o", "yaml"});
  EXPECT_NE(yaml.out.find("class: small"), std::string::npos) << yaml.out;
  EXPECT_EQ(Run({"delete", id}).out, "machine " + id + " deletion begun\n");
  EXPECT_EQ(Run({"machines"}).err, "The runtime has no machines.\n");
  EXPECT_EQ(Run({"machines", id}).code, 3);
  EXPECT_EQ(Run({"delete", id}).code, 3);
}

TEST_F(IriCommandTest, ShowsSecretsOnlyIfAsked) {
  Serve();
  Create(kMachine);
  const auto hidden = Run({"machines", "-o", "json"});
  EXPECT_EQ(hidden.out.find("c2VjcmV0"), std::string::npos) << hidden.out;
  EXPECT_NE(hidden.out.find("<6 bytes>"), std::string::npos) << hidden.out;
  const auto shown = Run({"machines", "-o", "json", "--show-secrets"});
  EXPECT_NE(shown.out.find("c2VjcmV0"), std::string::npos) << shown.out;
}

TEST_F(IriCommandTest, SwitchesAttachesAndDetaches) {
  Serve();
  const std::string id = Create(kMachine);
  EXPECT_EQ(Run({"power", id, "off"}).code, 0);
  EXPECT_NE(Run({"machines"}).out.find("Stopped"), std::string::npos);
  EXPECT_EQ(Run({"power", id, "sideways"}).code, 2);
  EXPECT_EQ(Run({"attach", id, "--volume", "data", "--size", "10Gi"}).code, 0);
  EXPECT_NE(Run({"machines", "-o", "json"}).out.find(R"("sizeBytes": "10737418240")"),
            std::string::npos);
  EXPECT_EQ(Run({"attach", id, "--volume", "data", "--size", "10Gi"}).code, 4);
  EXPECT_EQ(Run({"attach", id, "--volume", "more"}).code, 2);
  EXPECT_EQ(Run({"attach", id, "--nic", "primary", "--network", "n", "--ip", "10.0.0.1"}).code, 0);
  EXPECT_EQ(Run({"detach", id, "--volume", "data"}).code, 0);
  EXPECT_EQ(Run({"detach", id, "--nic", "primary"}).code, 0);
  EXPECT_EQ(Run({"detach", id, "--nic", "primary"}).code, 3);
}

TEST_F(IriCommandTest, CountsCapacityAndClasses) {
  Serve();
  Create(kMachine);
  const auto capacity = Run({"capacity", "-o", "wide"});
  EXPECT_NE(capacity.out.find("cpu        8       1      7"), std::string::npos) << capacity.out;
  EXPECT_NE(capacity.out.find("u-1"), std::string::npos) << capacity.out;
  const auto status = Run({"status"});
  EXPECT_NE(status.out.find("Machine   small      8"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("Bucket    standard"), std::string::npos) << status.out;
}

TEST_F(IriCommandTest, WatchesChanges) {
  Serve();
  Create(kMachine);
  const auto first = Run({"watch", "--changes", "1"});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("Resync")) << first.out;
}

TEST_F(IriCommandTest, HandlesVolumesSnapshotsBucketsAndEvents) {
  Serve();
  const std::string volume =
      Create(R"({"kind":"Volume","spec":{"class":"fast","resources":{"storageBytes":"1024"}}})");
  EXPECT_NE(Run({"volumes"}).out.find("Available"), std::string::npos);
  const std::string snapshot =
      Create(R"({"kind":"VolumeSnapshot","spec":{"volumeId":")" + volume + R"("}})");
  EXPECT_NE(Run({"snapshots"}).out.find(snapshot), std::string::npos);
  const std::string bucket = Create("{kind: Bucket, spec: {class: standard}}");
  EXPECT_NE(Run({"buckets"}).out.find(bucket), std::string::npos);
  EXPECT_EQ(Run({"delete", snapshot, volume, bucket}).code, 0);
  Create(kMachine);
  EXPECT_NE(Run({"events"}).out.find("Booted"), std::string::npos);
}

TEST_F(IriCommandTest, WorksWithoutBerthsAdditions) {
  Serve(runtime::FakeFlavor::kForeign);
  const auto version = Run({"version"});
  EXPECT_EQ(version.code, 0) << version.err;
  EXPECT_NE(version.out.find("create is not idempotent"), std::string::npos) << version.out;
  const auto capacity = Run({"capacity"});
  EXPECT_EQ(capacity.code, 1);
  EXPECT_NE(capacity.err.find("berth iri status"), std::string::npos) << capacity.err;
}

TEST_F(IriCommandTest, SaysWhatToDoWithoutARuntime) {
  const auto nobody = Run({"machines"});
  EXPECT_EQ(nobody.code, 3);
  EXPECT_NE(nobody.err.find("is the runtime started?"), std::string::npos) << nobody.err;
  Serve();
  const auto bad = Run({"create", "-f", "-"}, "kind: Ship\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("kind: Machine, Volume"), std::string::npos) << bad.err;
  const auto unknown = Run({"create", "-f", "-"}, "{kind: Machine, spec: {klass: small}}");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("klass"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace berth::cli
