// SPDX-License-Identifier: Apache-2.0
// Defends, on a whole server and over HTTPS: nobody binds, unbinds, picks a host or lets go of one
// without the right to, and a pool's identity reaches only what is bound to its pool.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/server_under_test.h"
#include "base/check.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::app {
namespace {

constexpr std::string_view kCompute = "/apis/compute.ironcore.dev/v1alpha1/";
constexpr std::string_view kAlias = "/apis/compute.OpenKCM.dev/v1alpha1/";
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";

struct Who {
  std::string user;  // "": the administrator
  std::vector<std::string> groups;
};

class PlacementRights : public testing::Test {
 protected:
  PlacementRights() {
    for (const std::string pool : {"a", "b"}) {
      Must("POST",
           std::string(kCompute) + "machinepools",
           R"({"metadata":{"name":")" + pool + R"("}})");
      Must("PATCH",
           std::string(kCompute) + "machinepools/" + pool + "/status",
           R"({"status":{"agent":{"mode":"Session"},"capacity":{"cpu":"8"}}})");
      uids_.push_back(UidOf(std::string(kCompute) + "machinepools/" + pool));
    }
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
         R"({"metadata":{"name":"edit"},)"
         R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},)"
         R"("subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"tenant"}]})");
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         R"({"metadata":{"name":"sched"},)"
         R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)"
         R"("name":"berth:scheduler"},)"
         R"("subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"sched"}]})");
  }

  int Send(const std::string& method, const std::string& target, std::string body, const Who& who) {
    net::HttpClientRequest request;
    request.method = method;
    request.target = target;
    request.headers.Set("Accept", "application/json");
    request.headers.Set("Content-Type",
                        method == "PATCH" ? "application/merge-patch+json" : "application/json");
    if (!who.user.empty()) request.headers.Set("Impersonate-User", who.user);
    for (const std::string& group : who.groups) request.headers.Add("Impersonate-Group", group);
    if (!body.empty()) request.body.emplace_back(body);
    const auto answer = server_.Run(server_.http().Send(std::move(request)));
    CHECK(answer.ok()) << answer.status();
    body_ = answer->body;
    return answer->status;
  }
  void Must(const std::string& method, const std::string& target, std::string body) {
    const int code = Send(method, target, std::move(body), {});
    CHECK(code == 200 || code == 201) << method << " " << target << ": " << body_;
  }
  meta::Value Read(const std::string& target) {
    Must("GET", target, "");
    auto value = meta::ParseJson(body_);
    CHECK(value.ok()) << value.status();
    return *std::move(value);
  }
  std::string UidOf(const std::string& target) {
    return std::string(Read(target).GetString({"metadata", "uid"}));
  }

  void MakeMachine(const std::string& name) {
    Must("POST",
         std::string(kMachines),
         R"({"metadata":{"name":")" + name + R"("},"spec":{"machineClassRef":{"name":"small"}}})");
  }
  std::string BindingOf(const std::string& name, size_t pool) {
    // Whoever leads: a server may run a scheduler of its own.
    const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases";
    Send("POST",
         leases,
         R"({"metadata":{"name":"scheduler"},"spec":{"holderIdentity":"s","leaseTransitions":1}})",
         {});
    const meta::Value lease = Read(leases + "/scheduler");
    const std::string holder(lease.GetString({"spec", "holderIdentity"}));
    const meta::Value* term = lease.Get({"spec", "leaseTransitions"});
    return R"({"holder":")" + holder + R"(","term":)" +
           std::to_string(term == nullptr ? 0 : term->as_int()) +
           R"(,"items":[{"kind":"Machine","name":")" + name + R"(","uid":")" +
           UidOf(std::string(kMachines) + "/" + name) + R"(","generation":1,"pool":")" +
           (pool == 0 ? "a" : "b") + R"(","poolUID":")" + uids_[pool] +
           R"(","amounts":{"cpu":1000}}]})";
  }
  std::string UnbindingOf(const std::string& name, std::string_view proof) {
    return R"({"uid":")" + UidOf(std::string(kMachines) + "/" + name) +
           R"(","placement":1,"proof":")" + std::string(proof) + R"(","reason":"Test"})";
  }
  static Who Pool(const std::string& name) {
    return {.user = "compute.ironcore.dev:system:machinepool:" + name,
            .groups = {"compute.ironcore.dev:system:machinepools", "system:authenticated"}};
  }

  ServerUnderTest server_;
  std::vector<std::string> uids_;
  std::string body_;  // of the last answer
};

TEST_F(PlacementRights, R4_1_BindingIsForTheSchedulerOnly) {
  MakeMachine("m");
  const std::string path = std::string(kMachines) + "/m/binding";
  EXPECT_EQ(Send("POST", path, BindingOf("m", 0), {"tenant", {}}), 403) << body_;
  EXPECT_EQ(Send("GET", path, "", {}), 405) << body_;
  EXPECT_EQ(Send("POST", path, BindingOf("m", 0), {"sched", {}}), 201) << body_;
  EXPECT_EQ(Read(std::string(kMachines) + "/m").GetString({"status", "placement", "pool"}), "a");
  EXPECT_EQ(Send("POST", path, BindingOf("m", 0), {"sched", {}}), 409) << body_;
  EXPECT_EQ(Send("DELETE", path, UnbindingOf("m", "HostReleased"), {"tenant", {}}), 403) << body_;
  // To say that a host is off needs the right to fence its pool, too.
  EXPECT_EQ(Send("DELETE", path, UnbindingOf("m", "OperatorFenced"), {"sched", {}}), 403) << body_;
  EXPECT_EQ(Send("DELETE", path, UnbindingOf("m", "Because"), {"sched", {}}), 422) << body_;
  EXPECT_EQ(Send("DELETE", path, UnbindingOf("m", "HostReleased"), {"sched", {}}), 200) << body_;
  // The path names the first item.
  MakeMachine("n");
  EXPECT_EQ(Send("POST", path, BindingOf("n", 0), {"sched", {}}), 400) << body_;
}

TEST_F(PlacementRights, ATenantPicksNoHostAndLetsGoOfNone) {
  MakeMachine("m");
  const std::string machine = std::string(kMachines) + "/m";
  const Who tenant{"tenant", {}};
  EXPECT_EQ(Send("PATCH", machine, R"({"spec":{"machinePoolRef":{"name":"a"}}})", tenant), 403);
  EXPECT_EQ(Send("POST",
                 std::string(kMachines),
                 R"({"metadata":{"name":"x"},"spec":{"machineClassRef":{"name":"small"},)"
                 R"("machinePoolRef":{"name":"a"}}})",
                 tenant),
            403);
  Must("POST", machine + "/binding", BindingOf("m", 0));
  EXPECT_EQ(Send("DELETE", machine + "?force=true", "", tenant), 403) << body_;
  EXPECT_EQ(Send("PATCH", machine, R"({"metadata":{"finalizers":null}})", tenant), 403) << body_;
  EXPECT_EQ(Send("DELETE", machine, "", tenant), 200) << body_;
  EXPECT_EQ(Send("GET", machine, "", tenant), 200) << "it waits for its host";
  EXPECT_EQ(Send("DELETE", machine + "?force=true", "", {}), 200) << body_;
  EXPECT_EQ(Send("GET", machine, "", tenant), 404);
}

TEST_F(PlacementRights, R4_3_AdoptionNeedsTheRightAndAnOrphan) {
  // The right to pick the pool is not the right to take over what runs there.
  Must("POST",
       "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"picker"},"rules":[{"verbs":["bind"],"apiGroups":)"
       R"(["compute.ironcore.dev"],"resources":["machinepools"]}]})");
  Must("POST",
       "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"picker"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
       R"("kind":"ClusterRole","name":"picker"},"subjects":[{"kind":"User","apiGroup":)"
       R"("rbac.authorization.k8s.io","name":"tenant"}]})");
  const auto adopt = [](const std::string& pool) {
    return R"({"metadata":{"name":"x","annotations":{"berth.dev/adopt":)"
           R"("0d1e2f30-4152-4637-8495-a6b7c8d9eafb"}},"spec":{"machineClassRef":)"
           R"({"name":"small"})" +
           pool + "}}";
  };
  const std::string on_a = R"(,"machinePoolRef":{"name":"a"})";
  EXPECT_EQ(Send("POST", std::string(kMachines), adopt(on_a), {"tenant", {}}), 403) << body_;
  EXPECT_NE(body_.find("adopt"), std::string::npos) << body_;
  EXPECT_EQ(Send("POST", std::string(kMachines), adopt(on_a), {}), 404)
      << "nobody shows such an orphan: " << body_;
  EXPECT_EQ(Send("POST", std::string(kMachines), adopt(""), {}), 400) << body_;
  EXPECT_EQ(
      Send(
          "POST", std::string(kAlias) + "namespaces/default/machines", adopt(on_a), {"tenant", {}}),
      403)
      << body_;
}

TEST_F(PlacementRights, ConversationsWithGuestsNeedTheRightToCreate) {
  MakeMachine("m");
  const std::string machine = std::string(kMachines) + "/m/";
  Must("POST",
       "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
       R"({"metadata":{"name":"view"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":)"
       R"("ClusterRole","name":"view"},"subjects":[{"kind":"User","apiGroup":)"
       R"("rbac.authorization.k8s.io","name":"reader"}]})");
  for (const std::string what : {"exec?command=id", "console", "portforward?ports=80"}) {
    EXPECT_EQ(Send("GET", machine + what, "", {"reader", {}}), 403) << what;
    EXPECT_EQ(Send("GET", machine + what, "", {"stranger", {}}), 403) << what;
    EXPECT_EQ(Send("GET", machine + what, "", Pool("a")), 403) << what;
    EXPECT_EQ(Send("GET", machine + what, "", {"tenant", {}}), 400) << what << ": " << body_;
    EXPECT_NE(body_.find("WebSocket"), std::string::npos) << body_;
    EXPECT_EQ(Send("DELETE", machine + what, "", {}), 405) << what;
  }
  EXPECT_EQ(Send("GET", machine + "log", "", {"stranger", {}}), 403);
  EXPECT_EQ(Send("GET", machine + "log", "", {"reader", {}}), 400) << "it is nowhere: " << body_;
  EXPECT_EQ(Send("GET", std::string(kMachines) + "/nobody/log", "", {}), 404);
  EXPECT_EQ(Send("GET", machine + "log?tailLines=x", "", {}), 400);
}

TEST_F(PlacementRights, APoolReachesWhatIsBoundToItAndNothingElse) {
  MakeMachine("on-a");
  MakeMachine("on-b");
  Must("POST", std::string(kMachines) + "/on-a/binding", BindingOf("on-a", 0));
  Must("POST", std::string(kMachines) + "/on-b/binding", BindingOf("on-b", 1));
  const Who a = Pool("a");
  for (const std::string_view domain : {kCompute, kAlias}) {
    const std::string machines = std::string(domain) + "namespaces/default/machines";
    EXPECT_EQ(Send("GET", machines + "/on-a", "", a), 200) << body_;
    EXPECT_EQ(Send("GET", machines + "/on-b", "", a), 403) << body_;
    EXPECT_EQ(Send("GET", machines, "", a), 403) << body_;
    const std::string all = std::string(domain) + "machines?fieldSelector=spec.machinePoolRef.name";
    EXPECT_EQ(Send("GET", all + "%3Da", "", a), 200) << body_;
    EXPECT_EQ(body_.find("on-b"), std::string::npos);
    EXPECT_EQ(Send("GET", all + "%3Db", "", a), 403) << body_;
    const std::string status = R"({"status":{"state":"Running"}})";
    EXPECT_EQ(Send("PATCH", machines + "/on-a/status", status, a), 200) << body_;
    EXPECT_EQ(Send("PATCH", machines + "/on-b/status", status, a), 403) << body_;
    const std::string finalizers =
        R"({"metadata":{"finalizers":["berth.dev/placement","machinepoollet.ironcore.dev/machine"]}})";
    EXPECT_EQ(Send("PATCH", machines + "/on-a", finalizers, a), 200) << body_;
    EXPECT_EQ(Send("PATCH", machines + "/on-a", R"({"spec":{"power":"Off"}})", a), 403) << body_;
    EXPECT_EQ(Send("PATCH", machines + "/on-a", R"({"metadata":{"labels":{"x":"y"}}})", a), 403);
    EXPECT_EQ(Send("DELETE", machines + "/on-a", "", a), 403) << body_;
    const std::string pools = std::string(domain) + "machinepools";
    EXPECT_EQ(Send("GET", pools + "/a", "", a), 200) << body_;
    EXPECT_EQ(Send("GET", pools + "/b", "", a), 403) << body_;
    EXPECT_EQ(Send("PATCH", pools + "/a", R"({"metadata":{"labels":{"tier":"secure"}}})", a), 403);
    EXPECT_EQ(Send("PATCH", pools + "/a", R"({"spec":{"taints":[]}})", a), 200) << "no change";
    EXPECT_EQ(Send("PATCH", pools + "/a", R"({"spec":{"unschedulable":true}})", a), 403);
    EXPECT_EQ(Send("PATCH", pools + "/b/status", R"({"status":{"state":"Ready"}})", a), 403);
  }
}

TEST_F(PlacementRights, DiscoveryAndOpenApiKnowTheSubresource) {
  const meta::Value resources = Read("/apis/compute.OpenKCM.dev/v1alpha1");
  bool found = false;
  for (const meta::Value& resource : resources.Find("resources")->items()) {
    if (resource.GetString({"name"}) != "machines/binding") continue;
    found = true;
    EXPECT_EQ(resource.GetString({"kind"}), "Binding");
    EXPECT_EQ(resource.GetString({"group"}), "berth.dev");
  }
  EXPECT_TRUE(found);
  const meta::Value document = Read("/openapi/v2");
  const std::string path = std::string(kMachines.substr(0, kMachines.find("default"))) +
                           "{namespace}/machines/{name}/binding";
  const meta::Value* paths = document.Find("paths");
  ASSERT_NE(paths, nullptr);
  ASSERT_NE(paths->Find(path), nullptr);
  EXPECT_NE(paths->Find(path)->Find("post"), nullptr);
  EXPECT_NE(paths->Find(path)->Find("delete"), nullptr);
}

}  // namespace
}  // namespace berth::app
