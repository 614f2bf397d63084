// SPDX-License-Identifier: Apache-2.0
// Whatever a runtime answers, the client survives it and says what is wrong.
#include "iri/grpc/client.h"

#include <grpcpp/support/server_callback.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "machine/v1alpha1/api.grpc.pb.h"
#include "net/grpc_server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"

namespace berth::iri {
namespace {

namespace pb = ::machine::v1alpha1;

// A runtime of somebody else: answers at once whatever the test wants.
class Stranger final : public pb::MachineRuntime::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListMachines(grpc::CallbackServerContext* context,
                                         const pb::ListMachinesRequest*,
                                         pb::ListMachinesResponse* response) override {
    *response = machines;
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }
  // These two never answer.
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext*,
                                   const pb::StatusRequest*,
                                   pb::StatusResponse*) override {
    return new Silent();
  }
  grpc::ServerUnaryReactor* DetachVolume(grpc::CallbackServerContext*,
                                         const pb::DetachVolumeRequest*,
                                         pb::DetachVolumeResponse*) override {
    return new Silent();
  }

  pb::ListMachinesResponse machines;
  grpc::Status status;

 private:
  class Silent final : public grpc::ServerUnaryReactor {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };
};

class RuntimeClientTest : public testing::Test {
 protected:
  RuntimeClientTest() {
    net::InitGrpcProcess();
    std::string folder = testing::TempDir() + "berth-iri-XXXXXX";
    folder_ = mkdtemp(folder.data());
    RuntimeClientOptions options;
    options.ask_limit = Duration::Seconds(20);
    client_ = std::make_unique<RuntimeClient>(loop_, folder_ + "/s", options);
  }
  ~RuntimeClientTest() override {
    client_.reset();
    StopServer();
    std::filesystem::remove_all(folder_);
  }
  void StartServer() { server_ = *net::GrpcServer::Start("unix:" + folder_ + "/s", {&stranger_}); }
  void StopServer() {
    if (server_ != nullptr) EXPECT_EQ(rt::RunTask(loop_, server_->Stop(Duration())), OkStatus());
    server_.reset();
  }
  Result<std::vector<Machine>> List() {
    return rt::RunTask(loop_, client_->machine().ListMachines(ObjectFilter()));
  }

  std::string folder_;
  rt::AsioLoop loop_;
  Stranger stranger_;
  std::unique_ptr<net::GrpcServer> server_;
  std::unique_ptr<RuntimeClient> client_;
};

TEST_F(RuntimeClientTest, R9_RefusesTextThatIsNoText) {
  StartServer();
  stranger_.machines.add_machines()->mutable_metadata()->set_id(std::string("a\0b", 3));
  const auto listed = List();
  EXPECT_EQ(listed.status().reason(), Reason::kInternal);
  EXPECT_NE(listed.status().message().find("ObjectMetadata.id: contains a NUL"), std::string::npos)
      << listed.status();
}

TEST_F(RuntimeClientTest, R9_RefusesAnswersAbove16Megabytes) {
  StartServer();
  const std::string large(200 * 1024, 'x');
  for (int i = 0; i < 90; ++i) stranger_.machines.add_machines()->mutable_metadata()->set_id(large);
  const auto listed = List();
  EXPECT_EQ(listed.status().reason(), Reason::kInternal);
  EXPECT_NE(listed.status().message().find("more than 16777216 bytes"), std::string::npos)
      << listed.status();
  stranger_.machines.Clear();
  EXPECT_TRUE(List().ok()) << "the next answer is taken again";
}

TEST_F(RuntimeClientTest, R9_ShowsErrorTextsWithoutControlCharacters) {
  StartServer();
  stranger_.status =
      grpc::Status(grpc::StatusCode::INTERNAL, "bad\x1b[31m" + std::string(9000, 'x'));
  const auto listed = List();
  EXPECT_EQ(listed.status().message().find('\x1b'), std::string_view::npos);
  EXPECT_LT(listed.status().message().size(), 1200U);
}

TEST_F(RuntimeClientTest, ServicesThatARuntimeLacksAreNotSupported) {
  StartServer();
  EXPECT_EQ(rt::RunTask(loop_, client_->host().Capacity()).status().reason(),
            Reason::kMethodNotSupported);
  const auto volumes = rt::RunTask(loop_, client_->volume().Version());
  EXPECT_EQ(volumes.status().reason(), Reason::kMethodNotSupported);
  EXPECT_NE(volumes.status().message().find("does not serve this"), std::string_view::npos)
      << volumes.status();
  auto watch = rt::RunTask(loop_, client_->host().Watch(""));
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ(rt::RunTask(loop_, (*watch)->Next()).status().reason(), Reason::kMethodNotSupported);
  EXPECT_EQ(rt::RunTask(loop_, (*watch)->Close()), OkStatus());
}

TEST_F(RuntimeClientTest, ConnectsAgainAtOnceAfterTheRuntimeCameBack) {
  EXPECT_EQ(List().status().reason(), Reason::kNotFound) << "there is no socket yet";
  StartServer();
  EXPECT_TRUE(List().ok());
  StopServer();
  EXPECT_FALSE(List().ok());
  StartServer();
  const auto listed = List();
  EXPECT_TRUE(listed.ok()) << listed.status();
}

TEST_F(RuntimeClientTest, KeepsItsDeadlines) {
  StartServer();
  RuntimeClientOptions options;
  options.ask_limit = Duration::Millis(50);
  RuntimeClient impatient(loop_, folder_ + "/s", options);
  EXPECT_EQ(rt::RunTask(loop_, impatient.machine().ClassStatus()).status().reason(),
            Reason::kTimeout);
}

TEST_F(RuntimeClientTest, AChangeMayTakeLongerThanAQuestion) {
  StartServer();
  RuntimeClientOptions options;
  options.ask_limit = Duration::Hours(1);
  options.change_limit = Duration::Millis(50);
  RuntimeClient impatient(loop_, folder_ + "/s", options);
  EXPECT_EQ(rt::RunTask(loop_, impatient.machine().DetachVolume("m-1", "data")).reason(),
            Reason::kTimeout);
  EXPECT_TRUE(rt::RunTask(loop_, impatient.machine().ListMachines(ObjectFilter())).ok());
  EXPECT_GT(kChangeLimit, kAskLimit);
}

}  // namespace
}  // namespace berth::iri
