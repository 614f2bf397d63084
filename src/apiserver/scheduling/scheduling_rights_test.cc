// SPDX-License-Identifier: Apache-2.0
// Defends: the service's door. Who is nobody gets nothing, who may not gets Forbidden, hosts reach
// no machines through it, and users reach no session of hosts beside it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apiserver/scheduling/scheduling_world.h"
#include "berth/agent/v1/agent.pb.h"
#include "rt/deadline.h"

namespace berth::apiserver {
namespace {

using proto::ClusterEvent;
using proto::WorkloadStatus;

constexpr char kSmall[] = R"({"spec":{"machineClassRef":{"name":"small"}}})";

class SchedulingRights : public testing::Test {
 protected:
  // What each call ends with, or ok if it is let in. The order is that of kCalls.
  Status Try(TestCaller& caller, const std::string& method, const std::string& namespace_) {
    const auto fill = [&](auto request) {
      request.set_namespace_(namespace_);
      request.set_instance_id("web");
      return request;
    };
    if (method == "Stop") {
      return world.Call(caller, "Stop", fill(proto::StopRequest())).status();
    }
    if (method == "Destroy") {
      return world.Call(caller, "Destroy", fill(proto::DestroyRequest())).status();
    }
    if (method == "Update") {
      auto update = fill(proto::UpdateRequest());
      update.set_manifest(kSmall);
      return world.Call(caller, "Update", update).status();
    }
    if (method == "Watch") {
      proto::WatchRequest watch;
      watch.set_namespace_(namespace_);
      watch.set_scope(proto::WatchRequest::WORKLOADS);
      return FirstWord(world.Open<ClusterEvent>(caller, "Watch", watch));
    }
    if (method == "Attach") {
      return FirstWord(world.Open<WorkloadStatus>(caller, "Attach", fill(proto::AttachRequest())));
    }
    auto schedule = fill(proto::ScheduleRequest());
    schedule.set_manifest(kSmall);
    return FirstWord(world.Open<WorkloadStatus>(caller, "Schedule", schedule));
  }
  template <class T>
  Status FirstWord(std::unique_ptr<TestStream<T>> stream) {
    world.Until([&] { return !stream->received.empty() || stream->end.has_value(); });
    return stream->end.value_or(OkStatus());
  }
  static const std::vector<std::string>& Calls() {
    static const std::vector<std::string> calls = {
        "Schedule", "Attach", "Watch", "Update", "Stop", "Destroy"};
    return calls;
  }

  SchedulingWorld world;
};

TEST_F(SchedulingRights, WhoeverIsNobodyIsRefusedEverywhere) {
  const pki::Credentials nothing;
  TestCaller& anonymous = world.Caller("anonymous", nothing);
  TestCaller& guesser =
      world.Caller("guesser", nothing, "berth_aaaaaaaaaa_" + std::string(43, 'a'));
  for (const std::string& method : Calls()) {
    EXPECT_TRUE(Try(anonymous, method, "default").Is(Reason::kUnauthorized)) << method;
    EXPECT_FALSE(Try(guesser, method, "default").ok()) << method;
  }
}

TEST_F(SchedulingRights, WhoeverIsNobodyIsRefusedBeforeItsRequestIsRead) {
  const pki::Credentials nothing;
  TestCaller& anonymous = world.Caller("anonymous", nothing);
  for (const char* method : {"Update", "Stop", "Destroy"}) {
    auto half =
        world.Run(anonymous.channel->Open(std::string(SchedulingService::kName) + method, {}));
    ASSERT_TRUE(half.ok()) << half.status();
    const auto refused = world.Run(rt::WithDeadline((*half)->Read(), Duration::Seconds(1)));
    EXPECT_TRUE(refused.status().Is(Reason::kUnauthorized)) << method << ": " << refused.status();
  }
}

TEST_F(SchedulingRights, AConnectionLearnsWhoseTokenItsCallsHave) {
  net::RpcRoutes routes;
  world.service().AddRoutes(routes);
  std::vector<std::string> introduced;
  const auto admit = [&](std::map<std::string, std::string, std::less<>> metadata) {
    net::RpcCall call{.method = "/x", .metadata = std::move(metadata), .deadline = {}, .peer = {}};
    call.peer.introduce = [&introduced](std::string user) {
      introduced.push_back(std::move(user));
    };
    const std::string stop = std::string(SchedulingService::kName) + "Stop";
    return world.Run(routes.unary.at(stop).admit(std::move(call)));
  };
  EXPECT_TRUE(admit({}).Is(Reason::kUnauthorized));
  EXPECT_TRUE(admit({{"authorization", "Bearer nothing"}}).Is(Reason::kUnauthorized));
  EXPECT_EQ(introduced, std::vector<std::string>());
  const std::string token = "Bearer " + world.MakeToken("controller");
  EXPECT_EQ(admit({{"authorization", token}}), OkStatus());
  EXPECT_EQ(introduced, std::vector<std::string>{"controller"});
}

TEST_F(SchedulingRights, AnExpiredCertificateIsNobody) {
  const auto credentials = world.CertificateOf("admin", {"system:masters"}, Duration::Hours(1));
  world.loop().RunFor(Duration::Hours(2));
  TestCaller& late = world.Caller("late", credentials);
  for (const std::string& method : Calls()) {
    EXPECT_TRUE(Try(late, method, "default").Is(Reason::kUnauthorized)) << method;
  }
}

TEST_F(SchedulingRights, ACertificateAndATokenAreTheSameUser) {
  world.Grant("tenant", "edit", "default");
  EXPECT_EQ(Try(world.UserCaller("tenant"), "Schedule", "default"), OkStatus());
  const std::string token = world.MakeToken("tenant");
  const pki::Credentials nothing;
  TestCaller& caller = world.Caller("laptop", nothing, token);
  for (const std::string& method : Calls()) {
    EXPECT_EQ(Try(caller, method, "default"), OkStatus()) << method;
  }
  world.RevokeToken(token);
  EXPECT_TRUE(Try(caller, "Attach", "default").Is(Reason::kUnauthorized));
}

// Nothing happens in the cluster: the streams have nothing to say, and end all the same.
TEST_F(SchedulingRights, SilentStreamsEndWithTheCredentialsThatTheyWereOpenedWith) {
  world.Grant("tenant", "edit", "default");
  world.Grant("reader", "view", "default");
  const std::string token = world.MakeToken("tenant");
  const pki::Credentials nothing;
  TestCaller& by_token = world.Caller("laptop", nothing, token);
  TestCaller& by_certificate = world.UserCaller("tenant");
  TestCaller& reader = world.UserCaller("reader");
  proto::ScheduleRequest schedule;
  schedule.set_namespace_("default");
  schedule.set_instance_id("web");
  schedule.set_manifest(kSmall);
  proto::WatchRequest watch;
  watch.set_namespace_("default");
  watch.set_scope(proto::WatchRequest::WORKLOADS);
  const auto scheduled = world.Open<WorkloadStatus>(by_token, "Schedule", schedule);
  const auto watched = world.Open<ClusterEvent>(by_certificate, "Watch", watch);
  const auto other = world.Open<ClusterEvent>(reader, "Watch", watch);
  const auto opened = [&] {
    return !scheduled->received.empty() && !watched->received.empty() && !other->received.empty();
  };
  ASSERT_TRUE(world.Until(opened));
  world.loop().RunFor(Duration::Seconds(2));
  ASSERT_FALSE(scheduled->end.has_value());
  world.RevokeToken(token);
  ASSERT_TRUE(world.Until([&] { return scheduled->end.has_value(); }));
  EXPECT_TRUE(scheduled->end->Is(Reason::kUnauthorized)) << *scheduled->end;
  EXPECT_TRUE(scheduled->end->message().contains("revoked")) << *scheduled->end;
  EXPECT_FALSE(watched->end.has_value());
  world.RevokeCertificates("tenant");
  ASSERT_TRUE(world.Until([&] { return watched->end.has_value(); }));
  EXPECT_TRUE(watched->end->Is(Reason::kUnauthorized)) << *watched->end;
  world.loop().RunFor(Duration::Seconds(2));
  EXPECT_FALSE(other->end.has_value()) << "others go on";
}

TEST_F(SchedulingRights, RightsEndAtTheNamespaceAndAtTheVerb) {
  world.MakeNamespace("other");
  world.Grant("tenant", "edit", "default");
  world.Grant("reader", "view", "default");
  TestCaller& tenant = world.UserCaller("tenant");
  ASSERT_EQ(Try(tenant, "Schedule", "default"), OkStatus());
  for (const std::string& method : Calls()) {
    const Status status = Try(tenant, method, "other");
    EXPECT_TRUE(status.Is(Reason::kForbidden)) << method << status;
    EXPECT_NE(status.message().find("machines"), std::string_view::npos) << status;
  }
  TestCaller& reader = world.UserCaller("reader");
  for (const std::string& method : Calls()) {
    const bool reads = method == "Attach" || method == "Watch";
    EXPECT_EQ(Try(reader, method, "default").ok(), reads) << method;
  }
  EXPECT_TRUE(Try(tenant, "Watch", "").Is(Reason::kForbidden)) << "all namespaces are not one";
  proto::WatchRequest all;
  all.set_namespace_("default");
  const Status pools = FirstWord(world.Open<ClusterEvent>(tenant, "Watch", all));
  EXPECT_TRUE(pools.Is(Reason::kForbidden)) << pools;
  EXPECT_NE(pools.message().find("machinepools"), std::string_view::npos) << pools;
}

TEST_F(SchedulingRights, ATenantPicksNoHostAndSpeaksForNone) {
  world.Grant("tenant", "edit", "default");
  TestCaller& tenant = world.UserCaller("tenant");
  proto::ScheduleRequest schedule;
  schedule.set_namespace_("default");
  schedule.set_instance_id("web");
  schedule.set_manifest(
      R"({"spec":{"machineClassRef":{"name":"small"},"machinePoolRef":{"name":"p"}}})");
  EXPECT_TRUE(
      FirstWord(world.Open<WorkloadStatus>(tenant, "Schedule", schedule)).Is(Reason::kForbidden));
  ASSERT_EQ(Try(tenant, "Schedule", "default"), OkStatus());
  const std::string pool = world.MakePool("p", 8);
  const meta::Object machine = SchedulingWorld::Must(
      world.Run(world.client().Get(apis::compute::kMachineKind, {"default", "web"})));
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  proto::DestroyRequest destroy;
  destroy.set_namespace_("default");
  destroy.set_instance_id("web");
  destroy.set_force(true);
  EXPECT_TRUE(world.Call(tenant, "Destroy", destroy).status().Is(Reason::kForbidden));
  EXPECT_TRUE(world.Exists(machine));
}

TEST_F(SchedulingRights, AStreamEndsWhenTheRightIsTakenAway) {
  world.Grant("tenant", "edit", "default");
  TestCaller& tenant = world.UserCaller("tenant");
  proto::WatchRequest watch;
  watch.set_namespace_("default");
  watch.set_scope(proto::WatchRequest::WORKLOADS);
  auto stream = world.Open<ClusterEvent>(tenant, "Watch", watch);
  ASSERT_TRUE(world.Until([&] { return !stream->received.empty(); }));
  world.Revoke("tenant", "edit", "default");
  world.MakeMachine("secret");
  ASSERT_TRUE(world.Until([&] { return stream->end.has_value(); }));
  EXPECT_TRUE(stream->end->Is(Reason::kForbidden)) << *stream->end;
  EXPECT_EQ(stream->received.size(), 1U) << "not a word about it";
}

TEST_F(SchedulingRights, AHostReachesNoMachineThroughTheService) {
  TestCaller& admin = world.Admin();
  ASSERT_EQ(Try(admin, "Schedule", "default"), OkStatus());
  TestCaller& host = world.UserCaller("berth:host:h1", {"berth:hosts"});
  for (const std::string& method : Calls()) {
    const Status status = Try(host, method, "default");
    EXPECT_TRUE(status.Is(Reason::kForbidden)) << method << status;
  }
}

TEST_F(SchedulingRights, APoolsIdentityReachesNothingOfAnotherPool) {
  TestCaller& admin = world.Admin();
  ASSERT_EQ(Try(admin, "Schedule", "default"), OkStatus());
  const std::string a = world.MakePool("a", 8);
  world.MakePool("b", 8);
  const meta::Object machine = SchedulingWorld::Must(
      world.Run(world.client().Get(apis::compute::kMachineKind, {"default", "web"})));
  ASSERT_TRUE(world.Bind(machine, "a", a).ok());
  const std::vector<std::string> groups = {"compute.ironcore.dev:system:machinepools"};
  TestCaller& b = world.UserCaller("compute.ironcore.dev:system:machinepool:b", groups);
  for (const std::string& method : Calls()) {
    EXPECT_TRUE(Try(b, method, "default").Is(Reason::kForbidden)) << method;
  }
  // Its own machine it may look at and not touch.
  TestCaller& own = world.UserCaller("compute.ironcore.dev:system:machinepool:a", groups);
  EXPECT_EQ(Try(own, "Attach", "default"), OkStatus());
  for (const char* method : {"Stop", "Destroy", "Schedule", "Watch"}) {
    EXPECT_TRUE(Try(own, method, "default").Is(Reason::kForbidden)) << method;
  }
}

TEST_F(SchedulingRights, AUserOpensNoSessionOfAHost) {
  const std::string connect = "/berth.agent.v1.AgentService/Connect";
  agent::v1::HostMessage hello;
  hello.mutable_hello()->mutable_versions()->set_min(1);
  hello.mutable_hello()->mutable_versions()->set_max(1);
  const pki::Credentials nothing;
  const std::string token = world.MakeToken("admin");
  for (TestCaller* caller : {&world.Admin(), &world.Caller("laptop", nothing, token)}) {
    net::RpcOptions options;
    options.metadata = caller->metadata;
    auto stream = world.Run(caller->channel->Open(connect, options));
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE((*stream)->TryWrite(hello.SerializeAsString()));
    const auto answer = world.Run((*stream)->Read());
    ASSERT_TRUE(answer.ok() && answer->has_value()) << answer.status();
    agent::v1::ServerMessage message;
    ASSERT_TRUE(message.ParseFromString(**answer));
    EXPECT_TRUE(message.has_refused());
    EXPECT_FALSE(message.has_welcome());
    const auto end = world.Run((*stream)->Read());
    EXPECT_FALSE(end.ok());
  }
}

TEST_F(SchedulingRights, ImpersonationIsHonouredOrRefusedNeverIgnored) {
  world.Grant("tenant", "edit", "default");
  TestCaller& admin = world.Admin();
  admin.metadata["impersonate-user"] = "tenant";
  EXPECT_EQ(Try(admin, "Schedule", "default"), OkStatus());
  EXPECT_TRUE(Try(admin, "Watch", "").Is(Reason::kForbidden)) << "as the tenant";
  TestCaller& tenant = world.UserCaller("tenant");
  tenant.metadata["impersonate-user"] = "admin";
  EXPECT_TRUE(Try(tenant, "Attach", "default").Is(Reason::kForbidden));
}

// gRPC joins what is sent several times with commas.
TEST_F(SchedulingRights, EachOfSeveralGroupsIsImpersonated) {
  TestCaller& admin = world.Admin();
  admin.metadata["impersonate-user"] = "somebody";
  admin.metadata["impersonate-group"] = "dev";
  EXPECT_TRUE(Try(admin, "Watch", "").Is(Reason::kForbidden));
  admin.metadata["impersonate-group"] = "dev,system:masters";
  EXPECT_EQ(Try(admin, "Watch", ""), OkStatus());
}

}  // namespace
}  // namespace berth::apiserver
