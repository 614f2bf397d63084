// SPDX-License-Identifier: Apache-2.0
// Defends: what the audit log hears of a controller's calls is what it hears of the like requests
// over HTTPS: every write however it ends, everything else if a policy names it, and bodies only
// where one asks for them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/scheduling/scheduling_world.h"

namespace berth::apiserver {
namespace {

using meta::Value;
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

// A world with one tenant, who may edit in "default".
class AuditedWorld : public SchedulingWorld {
 public:
  explicit AuditedWorld(const std::string& rules = "") : AuditedWorld(OptionsFor(rules)) {}
  explicit AuditedWorld(const SchedulingOptions& options) : SchedulingWorld(options) {
    Grant("tenant", "edit", "default");
    tenant = &UserCaller("tenant");
  }

  template <class T, class R>
  std::unique_ptr<TestStream<T>> Hear(const char* method, const R& request) {
    auto stream = Open<T>(*tenant, method, request);
    Until([&] { return !stream->received.empty() || stream->end.has_value(); });
    return stream;
  }
  std::unique_ptr<TestStream<WorkloadStatus>> Schedule(const std::string& id,
                                                       const std::string& manifest = kSmall) {
    auto request = About<proto::ScheduleRequest>(id);
    request.set_manifest(manifest);
    return Hear<WorkloadStatus>("Schedule", request);
  }
  std::unique_ptr<TestStream<WorkloadStatus>> Attach(const std::string& id) {
    return Hear<WorkloadStatus>("Attach", About<proto::AttachRequest>(id));
  }
  Status Update(const std::string& id, const std::string& manifest) {
    auto request = About<proto::UpdateRequest>(id);
    request.set_manifest(manifest);
    return Call(*tenant, "Update", request).status();
  }
  Status Stop(const std::string& id) {
    return Call(*tenant, "Stop", About<proto::StopRequest>(id)).status();
  }
  Status Destroy(const std::string& id) {
    return Call(*tenant, "Destroy", About<proto::DestroyRequest>(id)).status();
  }

  // "VERB RESOURCE NAMESPACE/NAME CODE" of each record since the last time.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const Value& record : TakeAudited()) {
      const std::string what = record.Find("path") != nullptr
                                   ? std::string(record.GetString({"path"}))
                                   : std::string(record.GetString({"resource"})) + " " +
                                         std::string(record.GetString({"namespace"})) + "/" +
                                         std::string(record.GetString({"name"}));
      lines.push_back(std::string(record.GetString({"verb"})) + " " + what + " " +
                      std::to_string(record.Get({"code"})->as_int()));
    }
    return lines;
  }

  TestCaller* tenant = nullptr;

 private:
  static SchedulingOptions OptionsFor(const std::string& rules) {
    SchedulingOptions options;
    if (!rules.empty()) {
      options.audit_policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [" + rules + "]}";
    }
    return options;
  }
};

using Lines = std::vector<std::string>;

TEST(SchedulingAudit, EveryWriteIsToldHoweverItEndsAndReadsAreNot) {
  AuditedWorld world;
  auto made = world.Schedule("web");
  EXPECT_EQ(world.Lines(), Lines{"create machines default/web 201"});
  auto again = world.Schedule("web");
  EXPECT_EQ(world.Lines(), Lines{"create machines default/web 200"}) << "it was there";
  auto attached = world.Attach("web");
  proto::WatchRequest watch;
  watch.set_namespace_("default");
  watch.set_scope(proto::WatchRequest::WORKLOADS);
  auto watched = world.Hear<ClusterEvent>("Watch", watch);
  EXPECT_FALSE(attached->received.empty() || watched->received.empty());
  EXPECT_EQ(world.Lines(), Lines());
  EXPECT_EQ(world.Update("web", kSmall), OkStatus());
  EXPECT_EQ(world.Stop("web"), OkStatus());
  EXPECT_EQ(world.Lines(),
            (Lines{"update machines default/web 200", "patch machines default/web 200"}));
  EXPECT_FALSE(world.Update("web", R"({"spec":{"cpu":1}})").ok());
  EXPECT_FALSE(world.Schedule("web", R"({"spec":{"machineClassRef":{"name":"large"}}})")
                   ->end.value_or(OkStatus())
                   .ok());
  EXPECT_FALSE(world.Destroy("nobody").ok());
  EXPECT_EQ(world.Lines(),
            (Lines{"update machines default/web 400",
                   "create machines default/web 409",
                   "delete machines default/nobody 404"}));
  EXPECT_EQ(world.Destroy("web"), OkStatus());
  EXPECT_EQ(world.Lines(), Lines{"delete machines default/web 200"});
}

TEST(SchedulingAudit, WhatCannotBeReadIsToldByWhatItWasToBe) {
  AuditedWorld world;
  const std::string stop = std::string(SchedulingService::kName) + "Stop";
  EXPECT_FALSE(world.Run(world.tenant->channel->Call(stop, "\xff", net::RpcOptions())).ok());
  EXPECT_FALSE(world.Stop("Web_1").ok());
  EXPECT_EQ(world.Lines(), (Lines{"patch machines / 400", "patch machines / 400"}));
  const pki::Credentials nothing;
  TestCaller& anonymous = world.Caller("anonymous", nothing);
  EXPECT_FALSE(world.Call(anonymous, "Stop", About<proto::StopRequest>("web")).ok());
  EXPECT_EQ(world.Lines(), Lines{"post " + stop + " 401"}) << "as over HTTPS, by its path";
}

TEST(SchedulingAudit, WhoMayNotIsToldAndInWhoseNameItCame) {
  AuditedWorld world;
  EXPECT_TRUE(world.Stop("web").Is(Reason::kNotFound));
  auto elsewhere = About<proto::DestroyRequest>("web");
  elsewhere.set_namespace_("elsewhere");
  EXPECT_FALSE(world.Call(*world.tenant, "Destroy", elsewhere).ok());
  EXPECT_EQ(world.Lines(),
            (Lines{"patch machines default/web 404", "delete machines elsewhere/web 403"}));
  world.tenant->metadata["impersonate-user"] = "admin";
  EXPECT_FALSE(world.Stop("web").ok());
  auto refused = world.TakeAudited();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].GetString({"user"}), "tenant") << "it did not become another";
  TestCaller& admin = world.Admin();
  admin.metadata["impersonate-user"] = "tenant";
  EXPECT_FALSE(world.Call(admin, "Stop", About<proto::StopRequest>("web")).ok());
  auto granted = world.TakeAudited();
  ASSERT_EQ(granted.size(), 1U);
  EXPECT_EQ(granted[0].GetString({"user"}), "tenant");
  EXPECT_EQ(granted[0].GetString({"impersonator"}), "admin");
}

TEST(SchedulingAudit, WhatIsRefusedBecauseOfTooManyIsTold) {
  SchedulingOptions options;
  options.limits.short_per_user = 0;
  AuditedWorld limited(options);
  EXPECT_TRUE(limited.Stop("web").Is(Reason::kTooManyRequests));
  EXPECT_EQ(limited.Lines(), Lines{"patch machines default/web 429"});
  options = SchedulingOptions();
  options.levels.levels[static_cast<size_t>(PriorityLevel::kObject)] = {
      .seats = 0, .queue_per_flow = 0, .queue_total = 0};
  AuditedWorld full(options);
  EXPECT_TRUE(full.Stop("web").Is(Reason::kTooManyRequests));
  EXPECT_EQ(full.Lines(), Lines{"patch machines default/web 429"});
}

TEST(SchedulingAudit, StreamsThatAPolicyNamesAreToldWhenTheyHaveBegun) {
  AuditedWorld world("{level: Metadata, verbs: [watch]}");
  world.Grant("tenant", "view", "");
  auto scheduled = world.Schedule("web");
  EXPECT_EQ(world.Lines(), Lines{"watch machines default/web 200"});
  auto attached = world.Attach("web");
  EXPECT_FALSE(attached->end.has_value());
  EXPECT_EQ(world.Lines(), Lines{"watch machines default/web 200"});
  auto watched = world.Hear<ClusterEvent>("Watch", proto::WatchRequest());
  ASSERT_FALSE(watched->end.has_value());
  auto both = world.TakeAudited();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].GetString({"resource"}), "machines");
  EXPECT_EQ(both[1].GetString({"resource"}), "machinepools");
  EXPECT_EQ(both[0].GetString({"id"}), both[1].GetString({"id"})) << "they are one call";
  watched->Close();
  EXPECT_EQ(world.Lines(), Lines()) << "the end is not told, as of a watch over HTTPS";
  EXPECT_TRUE(world.Attach("nobody")->end.has_value());
  proto::WatchRequest nonsense;
  nonsense.set_cursor("yesterday");
  EXPECT_TRUE(world.Hear<ClusterEvent>("Watch", nonsense)->end.has_value());
  EXPECT_EQ(world.Lines(), (Lines{"watch machines default/nobody 404", "watch machines / 400"}));
}

TEST(SchedulingAudit, ALevelSaysWhichBodiesAreTold) {
  AuditedWorld world(
      "{level: None, verbs: [watch]}, {level: Metadata, verbs: [patch]}, "
      "{level: Request, verbs: [update]}, {level: RequestResponse}");
  const Value manifest = *meta::ParseJson(kSmall);
  auto stream = world.Schedule("web", "spec: {machineClassRef: {name: small}}");
  auto records = world.TakeAudited();
  ASSERT_EQ(records.size(), 1U);
  ASSERT_NE(records[0].Find("requestObject"), nullptr);
  EXPECT_EQ(*records[0].Find("requestObject"), manifest) << "what was asked for";
  EXPECT_EQ(records[0].Find("responseObject"), nullptr) << "the answer is a stream";

  EXPECT_EQ(world.Update("web", kSmall), OkStatus());
  EXPECT_EQ(world.Stop("web"), OkStatus());
  records = world.TakeAudited();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(*records[0].Find("requestObject"), manifest);
  EXPECT_EQ(records[0].Find("responseObject"), nullptr);
  EXPECT_EQ(records[1].Find("requestObject"), nullptr);

  EXPECT_FALSE(world.Destroy("nobody").ok());
  EXPECT_EQ(world.Destroy("web"), OkStatus());
  records = world.TakeAudited();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].GetString({"requestObject", "instance_id"}), "nobody");
  EXPECT_EQ(records[0].GetString({"responseObject", "reason"}), "NotFound");
  EXPECT_EQ(records[1].GetString({"requestObject", "instance_id"}), "web");
  EXPECT_EQ(records[1].GetString({"responseObject", "state"}), "TERMINATED");
}

TEST(SchedulingAudit, WhatAPolicyLeavesOutIsNotTold) {
  AuditedWorld world(
      "{level: Metadata, verbs: [patch], omitStages: [ResponseComplete]}, "
      "{level: None, users: [tenant]}, {level: Metadata}");
  auto stream = world.Schedule("web");
  EXPECT_EQ(world.Stop("web"), OkStatus());
  EXPECT_EQ(world.Lines(), Lines());
  EXPECT_TRUE(world.Call(world.Admin(), "Destroy", About<proto::DestroyRequest>("web")).ok());
  EXPECT_EQ(world.Lines(), Lines{"delete machines default/web 200"});
}

}  // namespace
}  // namespace berth::apiserver
