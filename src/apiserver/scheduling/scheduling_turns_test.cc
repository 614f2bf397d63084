// SPDX-License-Identifier: Apache-2.0
// Defends: controllers wait for their turn in the levels and queues of HTTPS, whoever asks for much
// keeps nobody else out, and a stream that has begun sits nowhere.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/scheduling/scheduling_world.h"
#include "rt/scope.h"

namespace berth::apiserver {
namespace {

using proto::ClusterEvent;
using proto::WorkloadStatus;

constexpr char kSmall[] = R"({"spec":{"machineClassRef":{"name":"small"}}})";

template <class T>
T About(const std::string& id) {
  T request;
  request.set_namespace_("default");
  request.set_instance_id(id);
  return request;
}

// One request of a level at a time, and one of a user that waits.
SchedulingOptions Narrow() {
  SchedulingOptions options;
  for (const PriorityLevel level : {PriorityLevel::kObject, PriorityLevel::kListing}) {
    options.levels.levels[static_cast<size_t>(level)] = {
        .seats = 1, .queue_per_flow = 1, .queue_total = 8};
  }
  return options;
}

class TurnsWorld : public SchedulingWorld {
 public:
  explicit TurnsWorld(const SchedulingOptions& options) : SchedulingWorld(options) {}
  ~TurnsWorld() {
    const Status closed = Run(scope_.Close());
    CHECK(closed.ok()) << closed;
  }

  TestCaller& Tenant(const std::string& user) {
    Grant(user, "edit", "default");
    return UserCaller(user);
  }
  RequestGate::Seat Sit(PriorityLevel level) {
    auto seat = Run(gate().Enter(level, "somebody over HTTPS"));
    CHECK(seat.ok()) << seat.status();
    return *std::move(seat);
  }
  size_t Seated(PriorityLevel level) { return gate().level(level).seated(); }

  // How it ended, as soon as it has.
  using End = std::shared_ptr<std::optional<Status>>;
  End BeginStop(TestCaller& caller, const std::string& id) {
    auto end = std::make_shared<std::optional<Status>>();
    scope_.Spawn("test.stop", StopAs(&caller, id, end));
    return end;
  }
  void Schedule(TestCaller& caller, const std::string& id) {
    auto request = About<proto::ScheduleRequest>(id);
    request.set_manifest(kSmall);
    auto stream = Open<WorkloadStatus>(caller, "Schedule", request);
    CHECK(Until([&] { return !stream->received.empty(); }));
  }
  std::unique_ptr<TestStream<WorkloadStatus>> Attach(TestCaller& caller, const std::string& id) {
    return Open<WorkloadStatus>(caller, "Attach", About<proto::AttachRequest>(id));
  }
  std::unique_ptr<TestStream<ClusterEvent>> Watch(TestCaller& caller) {
    proto::WatchRequest request;
    request.set_namespace_("default");
    request.set_scope(proto::WatchRequest::WORKLOADS);
    return Open<ClusterEvent>(caller, "Watch", request);
  }
  template <class S>
  bool Hears(const S& stream) {
    return Until([&] { return !stream->received.empty() || stream->end.has_value(); },
                 Duration::Seconds(2)) &&
           !stream->end.has_value();
  }

 private:
  rt::Task<Status> StopAs(TestCaller* caller, std::string id, End end) {
    net::RpcOptions options;
    options.metadata = caller->metadata;
    const auto answer =
        co_await caller->channel->Call(std::string(SchedulingService::kName) + "Stop",
                                       About<proto::StopRequest>(id).SerializeAsString(),
                                       std::move(options));
    *end = answer.status();
    co_return OkStatus();
  }

  rt::TaskScope scope_{loop()};
};

TEST(SchedulingTurns, WritesWaitAmongThoseOfHttps) {
  TurnsWorld world(Narrow());
  TestCaller& tenant = world.Tenant("tenant");
  world.Schedule(tenant, "web");
  RequestGate::Seat seat = world.Sit(PriorityLevel::kObject);
  const auto waits = world.BeginStop(tenant, "web");
  world.loop().RunFor(Duration::Seconds(1));
  EXPECT_FALSE(waits->has_value());
  const Status refused = world.Call(tenant, "Stop", About<proto::StopRequest>("web")).status();
  EXPECT_TRUE(refused.Is(Reason::kTooManyRequests)) << refused;
  EXPECT_TRUE(refused.message().contains(R"(user "tenant" has 1 waiting in level object)"))
      << refused;
  EXPECT_TRUE(world.Call(world.Admin(), "Stop", About<proto::StopRequest>("web")).ok())
      << "an administrator does not wait";
  seat.Leave();
  ASSERT_TRUE(world.Until([&] { return waits->has_value(); }));
  EXPECT_EQ(**waits, OkStatus());
  EXPECT_EQ(world.Seated(PriorityLevel::kObject), 0);
}

// The disk is slow. All of them ask for as much as one may have, which together is all there is.
TEST(SchedulingTurns, FourUsersAtTheirLimitKeepNobodyElseOut) {
  SchedulingOptions options;
  options.limits.short_total = 16;
  options.limits.short_per_user = 4;
  options.levels.levels[static_cast<size_t>(PriorityLevel::kObject)] = {
      .seats = 4, .queue_per_flow = 8, .queue_total = 64};
  TurnsWorld world(options);
  std::vector<std::pair<TestCaller*, std::string>> noisy;
  for (const std::string user : {"a", "b", "c", "d"}) {
    TestCaller& caller = world.Tenant(user);
    for (int i = 0; i < 4; ++i) {
      noisy.emplace_back(&caller, user + std::to_string(i));
      world.Schedule(caller, noisy.back().second);
    }
  }
  TestCaller& quiet = world.Tenant("quiet");
  world.Schedule(quiet, "web");
  world.SetFaults({.delay = 1, .delay_max = Duration::Seconds(2)});
  std::vector<TurnsWorld::End> ends;
  for (const auto& [caller, id] : noisy) ends.push_back(world.BeginStop(*caller, id));
  world.loop().RunFor(Duration::Millis(20));
  ends.push_back(world.BeginStop(quiet, "web"));
  for (const TurnsWorld::End& end : ends) {
    ASSERT_TRUE(world.Until([&] { return end->has_value(); }, Duration::Minutes(1)));
    EXPECT_EQ(**end, OkStatus()) << "they wait";
  }
  world.SetFaults({});
}

TEST(SchedulingTurns, AWatchWaitsForItsBeginningOnly) {
  TurnsWorld world(Narrow());
  TestCaller& tenant = world.Tenant("tenant");
  RequestGate::Seat seat = world.Sit(PriorityLevel::kListing);
  const auto first = world.Watch(tenant);
  EXPECT_FALSE(world.Hears(first));
  EXPECT_FALSE(first->end.has_value());
  seat.Leave();
  EXPECT_TRUE(world.Hears(first));
  EXPECT_EQ(world.Seated(PriorityLevel::kListing), 0);
  EXPECT_TRUE(world.Hears(world.Watch(tenant))) << "the first one sits no more";
}

TEST(SchedulingTurns, StreamsOfOneMachineWaitAmongReadsAndWritesOfOneObject) {
  TurnsWorld world(Narrow());
  TestCaller& tenant = world.Tenant("tenant");
  RequestGate::Seat listing = world.Sit(PriorityLevel::kListing);
  world.Schedule(tenant, "web");
  RequestGate::Seat seat = world.Sit(PriorityLevel::kObject);
  const auto attached = world.Attach(tenant, "web");
  EXPECT_FALSE(world.Hears(attached));
  seat.Leave();
  EXPECT_TRUE(world.Hears(attached));
  EXPECT_EQ(world.Seated(PriorityLevel::kObject), 0);
  EXPECT_TRUE(world.Hears(world.Attach(tenant, "web")));
}

TEST(SchedulingTurns, AControllerComesBackToAllItsMachines) {
  TurnsWorld world{SchedulingOptions()};
  TestCaller& tenant = world.Tenant("tenant");
  world.Schedule(tenant, "web");
  world.loop().RunFor(Duration::Seconds(1));  // its stream has ended
  const pki::Credentials credentials = world.CertificateOf("tenant", {});
  std::vector<std::unique_ptr<TestStream<WorkloadStatus>>> streams;
  while (streams.size() < SchedulingService::kLimits.stream_per_user) {
    // A connection has no more than a hundred calls.
    TestCaller& caller = world.Caller("tenant-" + std::to_string(streams.size()), credentials);
    for (int i = 0; i < 64; ++i) streams.push_back(world.Attach(caller, "web"));
  }
  for (const auto& stream : streams) {
    ASSERT_TRUE(world.Hears(stream)) << stream->end.value_or(OkStatus());
  }
}

}  // namespace
}  // namespace berth::apiserver
