// SPDX-License-Identifier: Apache-2.0
// Defends: what a controller schedules is a machine like any other, once per id; its streams tell
// every change, survive the server and end with the machine; and the cluster's events can be gone
// on from at any cursor.
#include "apiserver/scheduling/scheduling_service.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/registry/field_ownership.h"
#include "apiserver/scheduling/outlet.h"
#include "apiserver/scheduling/scheduling_world.h"
#include "apiserver/scheduling/workload.h"
#include "net/status_map.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using proto::ClusterEvent;
using proto::WorkloadStatus;
using StatusStream = std::unique_ptr<TestStream<WorkloadStatus>>;
using EventStream = std::unique_ptr<TestStream<ClusterEvent>>;

constexpr char kSmall[] = R"({"spec":{"machineClassRef":{"name":"small"}}})";

template <class T>
T RequestFor(const std::string& id) {
  T request;
  request.set_namespace_("default");
  request.set_instance_id(id);
  return request;
}

class Scheduling : public testing::Test {
 protected:
  StatusStream Schedule(const std::string& id, const std::string& manifest = kSmall) {
    auto request = RequestFor<proto::ScheduleRequest>(id);
    request.set_manifest(manifest);
    return world.Open<WorkloadStatus>(*admin, "Schedule", request);
  }
  StatusStream Attach(const std::string& id) {
    return world.Open<WorkloadStatus>(*admin, "Attach", RequestFor<proto::AttachRequest>(id));
  }
  EventStream Watch(const std::string& cursor = "",
                    proto::WatchRequest::Scope scope = proto::WatchRequest::ALL) {
    proto::WatchRequest request;
    request.set_cursor(cursor);
    request.set_scope(scope);
    return world.Open<ClusterEvent>(*admin, "Watch", request);
  }
  template <class S>
  bool Heard(S& stream, size_t count) {
    return world.Until([&] {
      return stream->received.size() >= count || stream->end.has_value();
    }) && stream->received.size() >= count;
  }
  template <class S>
  Status End(S& stream, Duration limit = Duration::Seconds(5)) {
    if (!world.Until([&] { return stream->end.has_value(); }, limit)) return Timeout("no end");
    return *stream->end;
  }
  meta::Object Machine(const std::string& id) {
    return SchedulingWorld::Must(world.Run(world.client().Get(kMachineKind, {"default", id})));
  }
  void Bind(const std::string& id) {
    if (pool_uid.empty()) pool_uid = world.MakePool("p", 8);
    const auto bound = world.Bind(Machine(id), "p", pool_uid);
    ASSERT_TRUE(bound.ok()) << bound.status();
  }
  void SetState(const std::string& id, const std::string& state) {
    const Status patched = world.Patch(
        Machine(id), R"({"status":{"state":")" + state + R"("}})", client::Subresource::kStatus);
    ASSERT_TRUE(patched.ok()) << patched;
  }
  void SetReady(const std::string& pool, const std::string& status, const std::string& reason) {
    const auto patched = world.Run(
        world.client().Patch(apis::compute::kMachinePoolKind,
                             {"", pool},
                             client::PatchType::kMerge,
                             R"({"status":{"conditions":[{"type":"Ready","status":")" + status +
                                 R"(","reason":")" + reason + R"(","message":""}]}})",
                             {.subresource = client::Subresource::kStatus}));
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  // As `kubectl apply --server-side --field-manager deploy` does.
  Status ApplyPower(const std::string& id, const std::string& power) {
    auto configuration = meta::ParseJson(
        R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
        id + R"(","namespace":"default"},"spec":{"power":")" + power + R"("}})");
    CHECK(configuration.ok()) << configuration.status();
    const ApplyRequest request{.manager = "deploy",
                               .subresource = "",
                               .conflicts = meta::Conflicts::kRefused,
                               .configuration = *std::move(configuration)};
    Mutation apply = [&](const meta::Object& current) {
      return ApplyTo(world.scheme(), kMachineKind, &current, request, world.loop().WallNow());
    };
    WriteContext context;
    context.ownership = Ownership::kApplied;
    return world
        .Run(world.registry().Mutate(
            kMachineKind, {"default", id}, std::move(apply), std::move(context)))
        .status();
  }
  static std::vector<ClusterEvent::Type> Types(const EventStream& stream) {
    std::vector<ClusterEvent::Type> types;
    for (const auto& event : stream->received) types.push_back(event.type());
    return types;
  }

  SchedulingWorld world;
  TestCaller* admin = &world.Admin();
  std::string pool_uid;
};

TEST_F(Scheduling, C10_EveryChangeIsToldUntilTheMachineIsGone) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  EXPECT_EQ(stream->received[0].state(), WorkloadStatus::WAITING);
  EXPECT_EQ(stream->received[0].uid(), Machine("web").metadata().uid);
  Bind("web");
  ASSERT_TRUE(Heard(stream, 2));
  EXPECT_EQ(stream->received[1].state(), WorkloadStatus::STARTING);
  EXPECT_EQ(stream->received[1].pool(), "p");
  SetState("web", "Running");
  ASSERT_TRUE(Heard(stream, 3));
  EXPECT_EQ(stream->received[2].state(), WorkloadStatus::RUNNING);
  const auto destroyed = world.Call(*admin, "Destroy", RequestFor<proto::DestroyRequest>("web"));
  ASSERT_TRUE(destroyed.ok()) << destroyed.status();
  EXPECT_EQ(destroyed->state(), WorkloadStatus::TERMINATING) << "its host has not confirmed";
  ASSERT_TRUE(Heard(stream, 4));
  EXPECT_EQ(stream->received[3].state(), WorkloadStatus::TERMINATING);
  EXPECT_FALSE(stream->end.has_value());
  EXPECT_EQ(world.Unbind(Machine("web"), 1), OkStatus()) << "now it has";
  EXPECT_EQ(End(stream), OkStatus());
  EXPECT_EQ(stream->received.back().state(), WorkloadStatus::TERMINATED);
}

TEST_F(Scheduling, TheMachineIsOneLikeAnyOther) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  const meta::Object machine = Machine("web");
  EXPECT_EQ(machine.metadata().labels.at(std::string(kInstanceIdLabel)), "web");
  EXPECT_EQ(machine.as<apis::compute::Machine>().spec.power, "On") << "with its defaults";
  // Whoever deletes it by other means ends the stream as well.
  EXPECT_EQ(world.Delete(machine), OkStatus());
  EXPECT_EQ(End(stream), OkStatus());
  EXPECT_EQ(stream->received.back().state(), WorkloadStatus::TERMINATED);
}

TEST_F(Scheduling, TheSameIdWithTheSameContentAttaches) {
  auto first = Schedule("web");
  ASSERT_TRUE(Heard(first, 1));
  auto second = Schedule("web", "spec: {machineClassRef: {name: small}}");
  ASSERT_TRUE(Heard(second, 1));
  EXPECT_EQ(first->received[0].uid(), second->received[0].uid());
  Bind("web");
  EXPECT_TRUE(Heard(first, 2) && Heard(second, 2));
  const auto all = world.Run(world.client().List(kMachineKind, {}));
  EXPECT_EQ(all->items.size(), 1U);
}

TEST_F(Scheduling, TheSameIdWithOtherContentIsRefusedByName) {
  auto first = Schedule("web");
  ASSERT_TRUE(Heard(first, 1));
  auto other = Schedule("web", R"({"spec":{"machineClassRef":{"name":"large"}}})");
  const Status end = End(other);
  EXPECT_TRUE(end.Is(Reason::kAlreadyExists)) << end;
  EXPECT_NE(end.message().find("default/web"), std::string_view::npos) << end;
  EXPECT_TRUE(other->received.empty());
}

TEST_F(Scheduling, AMachineOfSomebodyElseIsLeftAlone) {
  world.MakeMachine("web");
  auto scheduled = Schedule("web");
  EXPECT_TRUE(End(scheduled).Is(Reason::kAlreadyExists));
  auto attached = Attach("web");
  EXPECT_TRUE(End(attached).Is(Reason::kNotFound));
  EXPECT_TRUE(world.Call(*admin, "Stop", RequestFor<proto::StopRequest>("web"))
                  .status()
                  .Is(Reason::kNotFound));
  EXPECT_TRUE(world.Call(*admin, "Destroy", RequestFor<proto::DestroyRequest>("web"))
                  .status()
                  .Is(Reason::kNotFound));
  EXPECT_EQ(Machine("web").as<apis::compute::Machine>().spec.power, "On");
}

TEST_F(Scheduling, C14_AStreamIsOpenedAgainAfterTheServerDied) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  const std::string uid = stream->received[0].uid();
  stream->Close();
  stream.reset();
  world.RestartAll();
  admin = &world.Admin();
  auto attached = Attach("web");
  ASSERT_TRUE(Heard(attached, 1));
  EXPECT_EQ(attached->received[0].uid(), uid);
  auto again = Schedule("web");
  ASSERT_TRUE(Heard(again, 1));
  EXPECT_EQ(again->received[0].uid(), uid);
  Bind("web");
  EXPECT_TRUE(Heard(attached, 2) && Heard(again, 2));
}

TEST_F(Scheduling, C9_AnUpdateChangesTheMachineAndItsContent) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  Bind("web");
  auto update = RequestFor<proto::UpdateRequest>("web");
  update.set_manifest(R"({"spec":{"machineClassRef":{"name":"small"},"power":"Off"}})");
  const auto updated = world.Call(*admin, "Update", update);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->generation(), 3) << "created, bound, updated";
  EXPECT_EQ(updated->pool(), "p") << "its place stays";
  EXPECT_EQ(Machine("web").as<apis::compute::Machine>().spec.power, "Off");
  auto old = Schedule("web");
  EXPECT_TRUE(End(old).Is(Reason::kAlreadyExists)) << "that is not its content any more";
  auto now = Schedule("web", update.manifest());
  EXPECT_TRUE(Heard(now, 1));
  update.set_manifest(R"({"spec":{"machineClassRef":{"name":"large"}}})");
  const Status refused = world.Call(*admin, "Update", update).status();
  EXPECT_TRUE(refused.Is(Reason::kInvalid)) << refused;
  EXPECT_NE(refused.message().find("machineClassRef"), std::string_view::npos) << refused;
}

TEST_F(Scheduling, C24_StopSwitchesOffAndDestroyRemoves) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  const auto stopped = world.Call(*admin, "Stop", RequestFor<proto::StopRequest>("web"));
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(Machine("web").as<apis::compute::Machine>().spec.power, "Off");
  EXPECT_TRUE(world.Call(*admin, "Stop", RequestFor<proto::StopRequest>("web")).ok());
  auto again = Schedule("web");
  ASSERT_TRUE(Heard(again, 1)) << "stopping changes no content";
  EXPECT_EQ(Machine("web").as<apis::compute::Machine>().spec.power, "Off");
  const auto gone = world.Call(*admin, "Destroy", RequestFor<proto::DestroyRequest>("web"));
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->state(), WorkloadStatus::TERMINATED) << "no host ever had it";
  EXPECT_EQ(End(stream), OkStatus());
  auto reused = Schedule("web", R"({"spec":{"machineClassRef":{"name":"large"}}})");
  EXPECT_TRUE(Heard(reused, 1)) << "a freed id may be used again";
}

TEST_F(Scheduling, C24_DestroyByForceDoesNotWaitForTheHost) {
  auto stream = Schedule("web");
  ASSERT_TRUE(Heard(stream, 1));
  Bind("web");
  auto destroy = RequestFor<proto::DestroyRequest>("web");
  destroy.set_force(true);
  const auto gone = world.Call(*admin, "Destroy", destroy);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->state(), WorkloadStatus::TERMINATED);
  EXPECT_EQ(End(stream), OkStatus());
}

// Somebody applies that the machine is on, a controller switches it off, and the first applies
// again.
TEST_F(Scheduling, WhatACallerChangesIsItsOwnAndNoApplyTakesItBackUnnoticed) {
  admin->metadata["user-agent"] = "fleetd/1.2 grpc-go/1.60";
  const auto update = [&](const std::string& id) {
    auto request = RequestFor<proto::UpdateRequest>(id);
    request.set_manifest(R"({"spec":{"machineClassRef":{"name":"small"},"power":"Off"}})");
    return world.Call(*admin, "Update", request).status();
  };
  const auto stop = [&](const std::string& id) {
    return world.Call(*admin, "Stop", RequestFor<proto::StopRequest>(id)).status();
  };
  for (const std::string id : {"updated", "stopped"}) {
    auto stream = Schedule(id);
    ASSERT_TRUE(Heard(stream, 1));
    const auto made = Machine(id).metadata().managed_fields;
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].manager, "fleetd");
    EXPECT_EQ(made[0].operation, "Update");
    ASSERT_EQ(ApplyPower(id, "On"), OkStatus());
    ASSERT_EQ(id == "updated" ? update(id) : stop(id), OkStatus());
    EXPECT_EQ(Machine(id).as<apis::compute::Machine>().spec.power, "Off");
    const Status again = ApplyPower(id, "On");
    EXPECT_TRUE(again.Is(Reason::kConflict)) << id << again;
    EXPECT_TRUE(again.message().contains("fleetd")) << again;
    EXPECT_EQ(Machine(id).as<apis::compute::Machine>().spec.power, "Off");
  }
}

TEST_F(Scheduling, C28_WhatIsUnknownIsAClearError) {
  auto attached = Attach("nobody");
  EXPECT_TRUE(End(attached).Is(Reason::kNotFound));
  EXPECT_TRUE(world.Call(*admin, "Stop", RequestFor<proto::StopRequest>("nobody"))
                  .status()
                  .Is(Reason::kNotFound));
  EXPECT_TRUE(world.Call(*admin, "Destroy", RequestFor<proto::DestroyRequest>("nobody"))
                  .status()
                  .Is(Reason::kNotFound));
  auto update = RequestFor<proto::UpdateRequest>("nobody");
  update.set_manifest(kSmall);
  EXPECT_TRUE(world.Call(*admin, "Update", update).status().Is(Reason::kNotFound));
}

TEST_F(Scheduling, C4_ABadRequestIsToldByField) {
  struct Case {
    const char* id;
    const char* manifest;
    const char* names;
  };
  for (const Case& bad : {Case{"Web_1", kSmall, "instance_id"},
                          Case{"web", "{}", "machineClassRef"},
                          Case{"web", R"({"spec":{"cpu":1}})", "spec.cpu"},
                          Case{"web",
                               R"({"spec":{"machineClassRef":{"name":"small"},"power":"Half"}})",
                               "spec.power"}}) {
    auto stream = Schedule(bad.id, bad.manifest);
    const Status end = End(stream);
    EXPECT_EQ(net::GrpcCodeOf(end.reason()), net::GrpcCode::kInvalidArgument) << end;
    EXPECT_NE(end.message().find(bad.names), std::string_view::npos) << end;
  }
  auto elsewhere = RequestFor<proto::ScheduleRequest>("web");
  elsewhere.set_namespace_("nowhere");
  elsewhere.set_manifest(kSmall);
  auto stream = world.Open<WorkloadStatus>(*admin, "Schedule", elsewhere);
  EXPECT_TRUE(End(stream).Is(Reason::kNotFound)) << *stream->end;
  const auto all = world.Run(world.client().List(kMachineKind, {}));
  EXPECT_TRUE(all->items.empty());
}

TEST_F(Scheduling, BytesThatAreNoMessageAreABadRequest) {
  net::RpcOptions options;
  for (const char* method : {"Schedule", "Attach", "Watch"}) {
    auto stream =
        world.Run(admin->channel->Open(std::string(SchedulingService::kName) + method, options));
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE((*stream)->TryWrite("\x0a\xff"));
    const auto read = world.Run((*stream)->Read());
    EXPECT_TRUE(read.status().Is(Reason::kBadRequest)) << method << read.status();
  }
  const auto answer = world.Run(
      admin->channel->Call(std::string(SchedulingService::kName) + "Stop", "\xff", options));
  EXPECT_TRUE(answer.status().Is(Reason::kBadRequest)) << answer.status();
}

TEST_F(Scheduling, C23_AWatchBeginsWithThePresentState) {
  world.MakePool("silent-before-its-first-word", 8);
  world.MakePool("a", 8);
  SetReady("a", "True", "Connected");
  auto web = Schedule("web");
  ASSERT_TRUE(Heard(web, 1));
  auto watch = Watch();
  ASSERT_TRUE(Heard(watch, 3));
  EXPECT_EQ(Types(watch),
            (std::vector{ClusterEvent::POOL_JOINED, ClusterEvent::STATUS, ClusterEvent::SYNCED}));
  EXPECT_EQ(watch->received[0].pool().name(), "a");
  EXPECT_EQ(watch->received[1].workload().instance_id(), "web");
  EXPECT_EQ(watch->received[0].cursor(), "") << "a part of the state is nothing to go on from";
  EXPECT_NE(watch->received[2].cursor(), "");
}

TEST_F(Scheduling, C20_PoolsThatJoinLeaveAndFallSilentAreToldOnce) {
  auto watch = Watch();
  ASSERT_TRUE(Heard(watch, 1));
  world.MakePool("a", 8);
  SetReady("a", "True", "Connected");
  world.Cordon("a");  // no news about its contact
  SetReady("a", "Unknown", "Silent");
  SetReady("a", "False", "PlannedAbsence");
  EXPECT_TRUE(world
                  .Run(world.client().Delete(
                      apis::compute::kMachinePoolKind, {"", "a"}, client::DeleteOptions()))
                  .ok());
  ASSERT_TRUE(Heard(watch, 5));
  EXPECT_EQ(Types(watch),
            (std::vector{ClusterEvent::SYNCED,
                         ClusterEvent::POOL_JOINED,
                         ClusterEvent::POOL_TIMED_OUT,
                         ClusterEvent::POOL_LEFT,
                         ClusterEvent::POOL_LEFT}));
  EXPECT_EQ(watch->received[2].pool().reason(), "Silent");
  EXPECT_EQ(watch->received[3].pool().reason(), "PlannedAbsence");
  EXPECT_EQ(watch->received[4].pool().reason(), "Removed");
}

TEST_F(Scheduling, C4_ARefusalIsAnEvent) {
  auto watch = Watch("", proto::WatchRequest::WORKLOADS);
  auto web = Schedule("web");
  ASSERT_TRUE(Heard(web, 1) && Heard(watch, 2));
  Bind("web");
  EXPECT_EQ(world.Unbind(Machine("web"), 1), OkStatus());
  ASSERT_TRUE(Heard(watch, 4));
  EXPECT_EQ(watch->received.back().type(), ClusterEvent::REFUSED);
  EXPECT_EQ(watch->received.back().workload().reason(), WorkloadStatus::HOST_REFUSED);
  EXPECT_EQ(watch->received.back().workload().message(), "the host said no");
}

TEST_F(Scheduling, AWatchGoesOnAtAnyCursor) {
  auto whole = Watch();
  ASSERT_TRUE(Heard(whole, 1));
  world.MakePool("a", 8);
  SetReady("a", "True", "Connected");
  std::vector<StatusStream> streams;
  for (const char* id : {"x", "y", "z"}) streams.push_back(Schedule(id));
  for (auto& stream : streams) ASSERT_TRUE(Heard(stream, 1));
  SetReady("a", "Unknown", "Silent");
  Bind("y");
  ASSERT_TRUE(Heard(whole, 7));
  for (size_t seen = 0; seen < whole->received.size(); ++seen) {
    auto resumed = Watch(whole->received[seen].cursor());
    // Everything after the cursor comes, whatever else does.
    std::multiset<std::string> missing;
    for (size_t i = seen + 1; i < whole->received.size(); ++i) {
      ClusterEvent event = whole->received[i];
      event.clear_cursor();
      missing.insert(event.SerializeAsString());
    }
    const auto all_came = [&] {
      std::multiset<std::string> left = missing;
      for (ClusterEvent event : resumed->received) {
        event.clear_cursor();
        const auto found = left.find(event.SerializeAsString());
        if (found != left.end()) left.erase(found);
      }
      return left.empty();
    };
    EXPECT_TRUE(world.Until(all_came)) << "after " << seen;
  }
}

TEST_F(Scheduling, ACursorOutlivesTheServer) {
  auto watch = Watch();
  ASSERT_TRUE(Heard(watch, 1));
  const std::string cursor = watch->received[0].cursor();
  watch->Close();
  watch.reset();
  auto web = Schedule("web");
  ASSERT_TRUE(Heard(web, 1));
  web->Close();
  web.reset();
  world.RestartAll();
  admin = &world.Admin();
  auto resumed = Watch(cursor);
  ASSERT_TRUE(Heard(resumed, 1));
  EXPECT_EQ(resumed->received[0].workload().instance_id(), "web");
  EXPECT_EQ(resumed->received[0].type(), ClusterEvent::STATUS);
}

TEST_F(Scheduling, ACursorThatIsTooOldSaysSo) {
  auto watch = Watch();
  ASSERT_TRUE(Heard(watch, 1));
  const std::string cursor = watch->received[0].cursor();
  watch->Close();
  auto web = Schedule("web");
  ASSERT_TRUE(Heard(web, 1));
  web->Close();
  web.reset();
  SetState("web", "Running");
  ASSERT_TRUE(world.Run(world.store().Compact(world.cache().revision())).ok());
  world.RestartAll();  // the new cache has no memory of before
  admin = &world.Admin();
  auto resumed = Watch(cursor);
  const Status end = End(resumed, Duration::Seconds(20));
  EXPECT_TRUE(end.Is(Reason::kExpired)) << end;
  EXPECT_EQ(net::GrpcCodeOf(end.reason()), net::GrpcCode::kOutOfRange);
  EXPECT_NE(end.message().find("without a cursor"), std::string_view::npos) << end;
  auto future = Watch("m999999999.p999999999");
  EXPECT_TRUE(End(future, Duration::Seconds(20)).Is(Reason::kExpired)) << *future->end;
  auto nonsense = Watch("yesterday");
  EXPECT_TRUE(End(nonsense).Is(Reason::kBadRequest));
}

TEST_F(Scheduling, TheObjectsOfOneCommitAreCoveredTogether) {
  auto watch = Watch("", proto::WatchRequest::WORKLOADS);
  ASSERT_TRUE(Heard(watch, 1));
  const std::string before = watch->received[0].cursor();
  const std::string pool = world.MakePool("p", 8);
  std::vector<client::BindItem> items;
  for (const char* id : {"a", "b", "c"}) {
    items.push_back(SchedulingWorld::ItemFor(world.MakeMachine(id), "p", pool));
  }
  ASSERT_TRUE(world.Bind(SchedulingWorld::RequestFor(std::move(items))).ok());
  ASSERT_TRUE(Heard(watch, 7));
  const auto& events = watch->received;
  EXPECT_NE(events[3].cursor(), before);
  EXPECT_EQ(events[4].cursor(), events[3].cursor()) << "the commit is not complete";
  EXPECT_EQ(events[5].cursor(), events[3].cursor());
  EXPECT_NE(events[6].cursor(), events[3].cursor());
}

TEST_F(Scheduling, AReaderThatTakesNothingIsCutOff) {
  std::string padding(60'000, 'x');
  world.MakePool("a", 8);
  auto watch = Watch("", proto::WatchRequest::POOLS);
  ASSERT_TRUE(Heard(watch, 1));
  watch->Close();
  // A stream that nobody reads: more than its window and its outbox hold.
  proto::WatchRequest request;
  request.set_scope(proto::WatchRequest::POOLS);
  auto stream = world.Run(
      admin->channel->Open(std::string(SchedulingService::kName) + "Watch", net::RpcOptions()));
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE((*stream)->TryWrite(request.SerializeAsString()));
  world.loop().RunFor(Duration::Seconds(1));
  for (int i = 0; i < 10; ++i) {
    const auto patched =
        world.Run(world.client().Patch(apis::compute::kMachinePoolKind,
                                       {"", "a"},
                                       client::PatchType::kMerge,
                                       R"({"status":{"conditions":[{"type":"Ready","status":")" +
                                           std::string(i % 2 == 0 ? "True" : "Unknown") +
                                           R"(","reason":"R","message":")" + padding + R"("}]}})",
                                       {.subresource = client::Subresource::kStatus}));
    ASSERT_TRUE(patched.ok()) << patched.status();
    world.loop().RunFor(Duration::Millis(10));
  }
  world.loop().RunFor(Outlet::kSlowMax + Duration::Seconds(1));
  Result<std::optional<std::string>> read = std::optional<std::string>("");
  while (read.ok() && read->has_value()) read = world.Run((*stream)->Read());
  EXPECT_TRUE(read.status().Is(Reason::kTooManyRequests)) << read.status();
  auto again = Watch();
  EXPECT_TRUE(Heard(again, 2)) << "nobody else is disturbed";
}

TEST(SchedulingLimits, StreamsOfOneCallerAreBounded) {
  SchedulingOptions options;
  options.limits.stream_per_user = 2;
  options.limits.stream_total = 3;
  SchedulingWorld world(options);
  TestCaller& admin = world.Admin();
  TestCaller& other = world.UserCaller("other", {"system:masters"});
  const auto watch = [&](TestCaller& caller) {
    auto stream = world.Open<ClusterEvent>(caller, "Watch", proto::WatchRequest());
    world.Until([&] { return !stream->received.empty() || stream->end.has_value(); });
    return stream;
  };
  auto first = watch(admin);
  auto second = watch(admin);
  EXPECT_FALSE(first->end.has_value() || second->end.has_value());
  auto third = watch(admin);
  ASSERT_TRUE(third->end.has_value());
  EXPECT_TRUE(third->end->Is(Reason::kTooManyRequests)) << *third->end;
  EXPECT_FALSE(watch(other)->end.has_value()) << "one caller keeps nobody else out";
  first->Close();
  EXPECT_FALSE(watch(admin)->end.has_value()) << "a place that was left can be taken";
}

}  // namespace
}  // namespace berth::apiserver
