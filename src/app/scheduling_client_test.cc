// SPDX-License-Identifier: Apache-2.0
// Defends: a grpc++ client as it comes is served by the scheduling service of a whole server, on
// the port of the hosts and with the administrator's certificate.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "app/server.h"
#include "app/server_options.h"
#include "base/check.h"
#include "berth/scheduler/v1/scheduler.grpc.pb.h"
#include "cli/kubeconfig/connection.h"
#include "net/grpc_status.h"
#include "rt/asio/loop_thread.h"

namespace berth::app {
namespace {

namespace proto = berth::scheduler::v1;

class SchedulingClient : public testing::Test {
 protected:
  SchedulingClient() : thread_("server") {
    net::InitGrpcProcess();
    std::string pattern = (std::filesystem::temp_directory_path() / "berth_test_XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
    options_.data_dir = pattern;
    options_.port = 0;
    options_.gateway_port = 0;
    const Status parsed = ParseDomains(kDefaultDomains, options_);
    CHECK(parsed.ok()) << parsed;
    Start();
    const auto config = cli::LoadKubeconfig(
        {.origin = cli::KubeconfigOrigin::kFlag, .paths = {server_->kubeconfig_path()}});
    CHECK(config.ok()) << config.status();
    const auto connection = cli::ResolveConnection(*config, {});
    CHECK(connection.ok()) << connection.status();
    grpc::SslCredentialsOptions credentials;
    credentials.pem_root_certs = connection->certificate_authority;
    credentials.pem_cert_chain = connection->client_certificate;
    credentials.pem_private_key = connection->client_key;
    stub_ = proto::SchedulingService::NewStub(
        grpc::CreateChannel(server_->gateway_address(), grpc::SslCredentials(credentials)));
  }
  ~SchedulingClient() override {
    Stop();
    std::filesystem::remove_all(options_.data_dir);
  }
  void Start() {
    auto started = thread_.Await(Server::Start(thread_.loop(), options_));
    CHECK(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  void Stop() {
    const Status stopped = thread_.Await(server_->Stop());
    EXPECT_TRUE(stopped.ok()) << stopped;
    const Status gone = thread_.Await(Drop());
    EXPECT_TRUE(gone.ok()) << gone;
  }
  rt::Task<Status> Drop() {
    server_.reset();
    co_return OkStatus();
  }
  static void Limit(grpc::ClientContext& context) {
    context.set_deadline(net::GrpcDeadline(Duration::Minutes(1)));
  }
  static proto::ScheduleRequest Small() {
    proto::ScheduleRequest request;
    request.set_namespace_("default");
    request.set_instance_id("web");
    request.set_manifest(R"({"spec":{"machineClassRef":{"name":"small"}}})");
    return request;
  }

  rt::LoopThread thread_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<proto::SchedulingService::Stub> stub_;
};

TEST_F(SchedulingClient, SchedulesAttachesAndDestroys) {
  grpc::ClientContext scheduling;
  Limit(scheduling);
  const auto stream = stub_->Schedule(&scheduling, Small());
  proto::WorkloadStatus status;
  ASSERT_TRUE(stream->Read(&status)) << stream->Finish().error_message();
  EXPECT_EQ(status.state(), proto::WorkloadStatus::WAITING);

  grpc::ClientContext watching;
  Limit(watching);
  const auto watch = stub_->Watch(&watching, proto::WatchRequest());
  proto::ClusterEvent event;
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.type(), proto::ClusterEvent::STATUS);
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.type(), proto::ClusterEvent::SYNCED);

  // There is no such class, and the scheduler says so after a while.
  while (status.reason() != proto::WorkloadStatus::MISSING_REFERENCE) {
    ASSERT_TRUE(stream->Read(&status)) << stream->Finish().error_message();
  }
  grpc::ClientContext destroying;
  Limit(destroying);
  proto::DestroyRequest destroy;
  destroy.set_namespace_("default");
  destroy.set_instance_id("web");
  proto::WorkloadStatus last;
  const grpc::Status destroyed = stub_->Destroy(&destroying, destroy, &last);
  ASSERT_TRUE(destroyed.ok()) << destroyed.error_message();
  EXPECT_EQ(last.state(), proto::WorkloadStatus::TERMINATED);
  while (stream->Read(&status)) continue;
  EXPECT_EQ(status.state(), proto::WorkloadStatus::TERMINATED);
  EXPECT_TRUE(stream->Finish().ok());
  watching.TryCancel();
  while (watch->Read(&event)) continue;
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SchedulingClient, ErrorsHaveGrpcsCodes) {
  proto::ScheduleRequest bad = Small();
  bad.set_manifest(R"({"spec":{"cpus":4}})");
  grpc::ClientContext scheduling;
  Limit(scheduling);
  const auto stream = stub_->Schedule(&scheduling, bad);
  proto::WorkloadStatus status;
  EXPECT_FALSE(stream->Read(&status));
  const grpc::Status refused = stream->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.error_message().find("spec.cpus"), std::string::npos);
  grpc::ClientContext stopping;
  Limit(stopping);
  proto::StopRequest stop;
  stop.set_namespace_("default");
  stop.set_instance_id("nobody");
  EXPECT_EQ(stub_->Stop(&stopping, stop, &status).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace berth::app
