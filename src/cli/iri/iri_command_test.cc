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

TEST_F(IriCommandTest, ExpandsAVolumeAndWhatAMachineSeesOfIt) {
  Serve();
  const std::string volume =
      Create(R"({"kind":"Volume","spec":{"class":"fast","resources":{"storageBytes":"1024"}}})");
  EXPECT_EQ(Run({"expand", volume, "--size", "20Gi"}).out,
            "volume " + volume + " expands to 20Gi\n");
  EXPECT_NE(Run({"volumes"}).out.find("20Gi"), std::string::npos);
  EXPECT_EQ(Run({"expand", volume, "--size", "1Gi"}).code, 2) << "nothing shrinks";
  EXPECT_EQ(Run({"expand", volume}).code, 2);
  EXPECT_EQ(Run({"expand", volume, "--size", "large"}).code, 2);
  EXPECT_EQ(Run({"expand", "nobody", "--size", "20Gi"}).code, 3);

  const std::string machine = Create(kMachine);
  const auto attach = Run({"attach",
                           machine,
                           "--volume",
                           "data",
                           "--driver",
                           "ceph",
                           "--handle",
                           "h-1",
                           "--size",
                           "10Gi"});
  ASSERT_EQ(attach.code, 0) << attach.err;
  const auto larger = Run({"expand", machine, "--volume", "data", "--size", "20Gi"});
  EXPECT_EQ(larger.out, "machine " + machine + " sees volume data with 20Gi\n") << larger.err;
  EXPECT_NE(Run({"machines", "-o", "json"}).out.find(R"("effectiveStorageBytes": "21474836480")"),
            std::string::npos);
  EXPECT_EQ(Run({"expand", machine, "--volume", "other", "--size", "20Gi"}).code, 3);
  EXPECT_EQ(Run({"expand", "nobody", "--volume", "data", "--size", "20Gi"}).code, 3);
  ASSERT_EQ(Run({"attach", machine, "--volume", "scratch", "--size", "1Gi"}).code, 0);
  const auto local = Run({"expand", machine, "--volume", "scratch", "--size", "20Gi"});
  EXPECT_EQ(local.code, 2);
  EXPECT_NE(local.err.find("local disk"), std::string::npos) << local.err;
}

TEST_F(IriCommandTest, AnnotatesAndKeepsWhatItDoesNotName) {
  Serve();
  const std::string id = Create(kMachine);
  EXPECT_EQ(Run({"annotate", id, "note=spare", "by=me"}).out, "machine " + id + " annotated\n");
  EXPECT_EQ(Run({"annotate", id, "note=", "by-", "more=a=b"}).code, 0);
  const std::string yaml = Run({"machines", id, "-o", "yaml"}).out;
  EXPECT_NE(yaml.find("note: \"\""), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("more: a=b"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("by: me"), std::string::npos) << yaml;
  for (const char* word : {"note", "=x", "-"}) {
    EXPECT_EQ(Run({"annotate", id, word}).code, 2) << word;
  }
  EXPECT_EQ(Run({"annotate", id}).code, 2);
  EXPECT_EQ(Run({"annotate", "nobody", "a=b"}).code, 3);
}

TEST_F(IriCommandTest, KeepsRoomAndGivesItUp) {
  Serve();
  EXPECT_EQ(Run({"reservations"}).err, "The runtime has no reservations.\n");
  EXPECT_EQ(Run({"reserve", "r-1", "cpu=2", "memory=1Gi"}).out,
            "cpu=2, memory=1Gi reserved as r-1\n");
  EXPECT_EQ(Run({"reserve", "r-2", "cpu=500m", "--machine-uid", "u-1"}).code, 0);
  EXPECT_EQ(Run({"reserve", "r-1", "cpu=1"}).code, 0) << "replaced";
  const auto table = Run({"reservations"});
  EXPECT_NE(table.out.find("r-1   cpu=1       <anyone>"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("r-2   cpu=500m    u-1"), std::string::npos) << table.out;
  EXPECT_NE(Run({"reservations", "-o", "json"}).out.find(R"("id": "r-2")"), std::string::npos);
  EXPECT_EQ(Run({"reserve", "r-3", "cpu=9000"}).code, 4) << "the host has less";
  EXPECT_EQ(Run({"unreserve", "r-1", "nobody"}).code, 3);
  EXPECT_EQ(Run({"unreserve", "r-1"}).out, "reservation r-1 given up\n");
  EXPECT_EQ(Run({"reservations"}).out.find("r-1"), std::string::npos);
  for (const char* word : {"cpu", "=1", "cpu=0", "cpu=-1", "cpu=many"}) {
    EXPECT_EQ(Run({"reserve", "r-4", word}).code, 2) << word;
  }
  EXPECT_EQ(Run({"reserve", "r-4", "cpu=1", "cpu=2"}).code, 2);
  EXPECT_EQ(Run({"reserve", "r-4"}).code, 2);
}

TEST_F(IriCommandTest, PutsMachinesUnderALeaseAndTakesItFromThem) {
  Serve();
  Create(kMachine);
  EXPECT_EQ(Run({"leases"}).err, "No machine of the runtime is under a lease.\n");
  EXPECT_EQ(Run({"lease", "u-1", "--for", "1h"}).out,
            "machine u-1 lives for 60m unless it is renewed\n");
  const auto live = Run({"leases"});
  EXPECT_NE(live.out.find("Live"), std::string::npos) << live.out;
  EXPECT_NE(Run({"leases", "-o", "json"}).out.find(R"("machineUid": "u-1")"), std::string::npos);
  EXPECT_EQ(Run({"lease", "u-1", "--release"}).out, "machine u-1 is under no lease\n");
  EXPECT_EQ(Run({"lease", "u-1", "--for", "0s"}).code, 0);
  const auto over = Run({"leases"});
  EXPECT_NE(over.out.find("Fenced"), std::string::npos) << over.out;
  EXPECT_EQ(Run({"lease", "u-1"}).code, 2);
  EXPECT_EQ(Run({"lease", "--for", "1s"}).code, 2);
  EXPECT_EQ(Run({"lease", "u-1", "--for", "1s", "--release"}).code, 2);
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
  for (const char* word : {"reservations", "leases"}) {
    const auto kept = Run({word});
    EXPECT_EQ(kept.code, 1) << word;
    EXPECT_NE(kept.err.find("keeps no " + std::string(word)), std::string::npos) << kept.err;
  }
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
