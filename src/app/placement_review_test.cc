// SPDX-License-Identifier: Apache-2.0
// Defends, on a whole server and over HTTPS: a PlacementReview and a dry run say where something
// would go, to whoever may know, and place nothing.
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
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
constexpr std::string_view kReviews =
    "/apis/berth.dev/v1alpha1/namespaces/default/placementreviews";

class PlacementReviewing : public testing::Test {
 protected:
  PlacementReviewing() {
    Must("POST",
         std::string(kCompute) + "machineclasses",
         R"({"metadata":{"name":"small"},"capabilities":{"cpu":"1","memory":"1Gi"}})");
    MakePool("alpha", 4);
    MakePool("beta", 2);
    Bind("tenant", "view", "default");
    WaitFor([&] { return Answer(Draft("web", "")).GetString({"verdict"}) == "Fits"; });
  }

  // A pool in API mode: nobody has to answer for it.
  void MakePool(const std::string& name, int cpus) {
    Must("POST",
         std::string(kCompute) + "machinepools",
         R"({"metadata":{"name":")" + name + R"("},"spec":{"providerID":"test://)" + name +
             R"("}})");
    Must("PATCH",
         std::string(kCompute) + "machinepools/" + name + "/status",
         R"({"status":{"state":"Ready","agent":{"mode":"API"},"capacity":{"cpu":")" +
             std::to_string(cpus) +
             R"(","memory":"64Gi"},"availableMachineClasses":[{"name":"small"}],)"
             R"("conditions":[{"type":"Ready","status":"True","reason":"Test"}]}})");
  }
  void Bind(const std::string& user, const std::string& role, const std::string& space) {
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space + "/rolebindings",
         R"({"metadata":{"name":")" + user +
             R"("},"roleRef":{"apiGroup":)"
             R"("rbac.authorization.k8s.io","kind":"ClusterRole","name":")" +
             role +
             R"("},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":")" +
             user + R"("}]})");
  }
  // A user who may ask, and no more.
  void BindAsker() {
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
         R"({"metadata":{"name":"asker"},"rules":[{"verbs":["create"],"apiGroups":["berth.dev"],)"
         R"("resources":["placementreviews"]}]})");
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
         R"({"metadata":{"name":"asker"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
         R"("kind":"Role","name":"asker"},"subjects":[{"kind":"User","apiGroup":)"
         R"("rbac.authorization.k8s.io","name":"asker"}]})");
  }
  static std::string Machine(const std::string& name, const std::string& spec) {
    return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
           name + R"("},"spec":{"machineClassRef":{"name":"small"})" + spec + "}}";
  }
  static std::string Draft(const std::string& name, const std::string& spec) {
    return R"({"spec":{"object":)" + Machine(name, spec) + "}}";
  }
  static std::string About(const std::string& name) {
    return R"({"spec":{"objectRef":{"kind":"Machine","name":")" + name + R"("}}})";
  }

  // A question about a group of two or more with these machines.
  static std::string AboutGroup(const std::vector<std::string>& related) {
    std::string drafts;
    for (const std::string& draft : related) drafts += (drafts.empty() ? "" : ",") + draft;
    return R"({"spec":{"object":{"apiVersion":"berth.dev/v1alpha1","kind":"MachineGroup",)"
           R"("metadata":{"name":"ring"},"spec":{"minMembers":2}},"related":[)" +
           drafts + "]}}";
  }
  static std::string Member(const std::string& name) {
    return Machine(name, R"(,"placement":{"groupRef":{"name":"ring"}})");
  }

  int Send(const std::string& method,
           const std::string& target,
           const std::string& body,
           const std::string& user = "") {
    net::HttpClientRequest request;
    request.method = method;
    request.target = target;
    request.headers.Set("Accept", "application/json");
    request.headers.Set("Content-Type",
                        method == "PATCH" ? "application/merge-patch+json" : "application/json");
    if (!user.empty()) request.headers.Set("Impersonate-User", user);
    if (!body.empty()) request.body.emplace_back(body);
    const auto answer = server_.Run(server_.http().Send(std::move(request)));
    CHECK(answer.ok()) << answer.status();
    body_ = answer->body;
    warning_ = answer->headers.Get("Warning");
    return answer->status;
  }
  void Must(const std::string& method, const std::string& target, const std::string& body) {
    const int code = Send(method, target, body);
    CHECK(code == 200 || code == 201) << method << " " << target << ": " << body_;
  }
  meta::Value Json() const {
    auto value = meta::ParseJson(body_);
    CHECK(value.ok()) << value.status();
    return *std::move(value);
  }
  // The status of the review.
  meta::Value Answer(const std::string& review) {
    const int code = Send("POST", std::string(kReviews), review);
    if (code != 201) return meta::Value::Object();
    return *Json().Find("status");
  }
  template <class Done>
  void WaitFor(Done done) {
    for (int i = 0; i < 10'000; ++i) {
      if (done()) return;
    }
    FAIL() << "never happens; last answer: " << body_;
  }

  ServerUnderTest server_;
  std::string body_;     // of the last answer
  std::string warning_;  // its header
};

TEST_F(PlacementReviewing, ADraftIsAnsweredAndNotPlaced) {
  const meta::Value status = Answer(Draft("web", ""));
  EXPECT_EQ(status.GetString({"verdict"}), "Fits") << body_;
  EXPECT_EQ(status.GetString({"pool"}), "beta");
  EXPECT_EQ(status.Find("room")->as_int(), 6);
  EXPECT_EQ(status.GetString({"message"}),
            "would be placed on pool beta (2 of 2 pools fit; room for 6)");
  EXPECT_EQ(status.Find("ranked")->items().size(), 2U);
  EXPECT_EQ(Send("GET", std::string(kMachines) + "/web", ""), 404);
  EXPECT_EQ(Send("GET", std::string(kReviews), ""), 405) << "nothing is stored";
}

TEST_F(PlacementReviewing, AnObjectThatExistsIsExplained) {
  Must("POST", std::string(kMachines), Machine("web", ""));
  WaitFor([&] { return Answer(About("web")).GetString({"verdict"}) == "Placed"; });
  const meta::Value placed = Answer(About("web"));
  EXPECT_EQ(placed.GetString({"pool"}), "beta") << body_;
  Must("POST",
       std::string(kMachines),
       Machine("picky", R"(,"machinePoolSelector":{"zone":"nowhere"})"));
  const meta::Value picky = Answer(About("picky"));
  EXPECT_EQ(picky.GetString({"verdict"}), "NoPool") << body_;
  EXPECT_EQ(picky.Find("failed")->items()[0].GetString({"rule"}), "Selector");
  EXPECT_EQ(Send("POST", std::string(kReviews), About("nobody")), 404) << body_;
}

TEST_F(PlacementReviewing, ADryRunSaysWhereItWouldGoAndARealCreateDoesNot) {
  const std::string dry = std::string(kMachines) + "?dryRun=All";
  EXPECT_EQ(Send("POST", dry, Machine("web", "")), 201) << body_;
  EXPECT_NE(warning_.find("dry run: would be placed on pool beta (2 of 2 pools fit; room for 6)"),
            std::string::npos)
      << warning_;
  EXPECT_EQ(Send("POST", dry, Machine("web", R"(,"machinePoolSelector":{"zone":"x"})")), 201);
  EXPECT_NE(warning_.find("dry run: none of 2 pools takes it"), std::string::npos) << warning_;
  EXPECT_EQ(Send("GET", std::string(kMachines) + "/web", ""), 404);
  EXPECT_EQ(Send("POST", std::string(kMachines), Machine("web", "")), 201);
  EXPECT_EQ(warning_, "");
  EXPECT_EQ(Send("POST", "/api/v1/namespaces?dryRun=All", R"({"metadata":{"name":"x"}})"), 201);
  EXPECT_EQ(warning_, "") << "a namespace has no place";
}

TEST_F(PlacementReviewing, ASetIsCounted) {
  const std::string set =
      R"({"apiVersion":"berth.dev/v1alpha1","kind":"MachineSet","metadata":{"name":"web"},"spec":)"
      R"({"replicas":8,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":)"
      R"({"app":"web"}},"spec":{"machineClassRef":{"name":"small"}}}}})";
  const meta::Value status = Answer(R"({"spec":{"object":)" + set + "}}");
  EXPECT_EQ(status.GetString({"verdict"}), "FitsPartly") << body_;
  EXPECT_EQ(status.Find("wanted")->as_int(), 8);
  EXPECT_EQ(status.Find("room")->as_int(), 6);
  EXPECT_EQ(Send("POST", "/apis/berth.dev/v1alpha1/namespaces/default/machinesets?dryRun=All", set),
            201)
      << body_;
  EXPECT_NE(warning_.find("dry run: 6 of 8 machines fit"), std::string::npos) << warning_;
}

TEST_F(PlacementReviewing, WhatStandsInOneFileIsJudgedTogether) {
  const std::string volume =
      R"({"apiVersion":"storage.ironcore.dev/v1alpha1","kind":"Volume","metadata":{"name":"data"},)"
      R"("spec":{"volumeClassRef":{"name":"disk"},"resources":{"storage":"1Gi"}}})";
  const std::string size =
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachineClass","metadata":{"name":)"
      R"("tiny"},"capabilities":{"cpu":"1","memory":"1Gi"}})";
  const std::string machine =
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":"db"},)"
      R"("spec":{"machineClassRef":{"name":"tiny"},)"
      R"("volumes":[{"name":"data","volumeRef":{"name":"data"}}]}})";
  const auto ask = [&](const std::string& related) {
    return Answer(R"({"spec":{"object":)" + machine + R"(,"related":[)" + related + "]}}");
  };
  EXPECT_EQ(ask("").GetString({"message"}), "there is no MachineClass tiny") << body_;
  EXPECT_EQ(ask(size).GetString({"message"}), "there is no Volume data") << body_;
  const meta::Value status = ask(size + "," + volume);
  EXPECT_EQ(status.GetString({"verdict"}), "NoPool") << body_;
  EXPECT_EQ(status.Find("failed")->items()[0].GetString({"rule"}), "Class") << body_;
}

TEST_F(PlacementReviewing, AGroupIsAnsweredForAllMembersAtOnce) {
  const meta::Value fits = Answer(AboutGroup({Member("m-0"), Member("m-1")}));
  EXPECT_EQ(fits.GetString({"verdict"}), "Fits") << body_;
  EXPECT_EQ(fits.GetString({"message"}), "all 2 members fit at once");
  EXPECT_EQ(fits.Find("members")->items()[0].GetString({"name"}), "m-0");
  EXPECT_EQ(fits.Find("members")->items()[0].GetString({"pool"}), "beta");
  EXPECT_EQ(Answer(AboutGroup({Member("m-0")})).GetString({"verdict"}), "Waits") << body_;
  std::vector<std::string> many;
  for (int i = 0; i < 8; ++i) many.push_back(Member("m-" + std::to_string(i)));
  EXPECT_EQ(Answer(AboutGroup(many)).GetString({"message"}), "room for 6 of 8 members at once");
  // Members that exist are named, so who asks must be allowed to see them.
  const std::string about = AboutGroup({Member("m-0"), Member("m-1")});
  EXPECT_EQ(Send("POST", std::string(kReviews), about, "tenant"), 201) << body_;
  BindAsker();
  EXPECT_EQ(Send("POST", std::string(kReviews), Draft("web", ""), "asker"), 201) << body_;
  EXPECT_EQ(Send("POST", std::string(kReviews), about, "asker"), 403) << body_;
}

TEST_F(PlacementReviewing, WhatDecidesAboutNoPlaceDoesNotComeWithAQuestion) {
  const auto code = [&](const std::string& draft) {
    return Send("POST", std::string(kReviews), AboutGroup({Member("m-0"), draft}));
  };
  EXPECT_EQ(code(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}})"), 400);
  EXPECT_NE(body_.find("spec.related[1]: no place depends on a Secret"), std::string::npos)
      << body_;
  EXPECT_EQ(
      code(R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":)"
           R"({"name":"x","namespace":"other"},"spec":{"machineClassRef":{"name":"small"}}})"),
      400);
  EXPECT_NE(body_.find("spec.related[1].metadata.namespace"), std::string::npos) << body_;
  EXPECT_EQ(code(R"("web")"), 422) << body_;
  EXPECT_EQ(
      Send("POST", std::string(kReviews), AboutGroup(std::vector<std::string>(513, Member("m-0")))),
      422);
  EXPECT_NE(body_.find("512"), std::string::npos) << body_;
}

TEST_F(PlacementReviewing, WhoMayReadMayAskAndOnlyInHisNamespace) {
  Must("POST", "/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
  Must("POST", std::string(kCompute) + "namespaces/other/machines", Machine("secret-project", ""));
  EXPECT_EQ(Send("POST", std::string(kReviews), Draft("web", ""), "tenant"), 201) << body_;
  EXPECT_EQ(body_.find("secret-project"), std::string::npos) << body_;
  EXPECT_EQ(Send("POST",
                 "/apis/berth.dev/v1alpha1/namespaces/other/placementreviews",
                 About("secret-project"),
                 "tenant"),
            403)
      << body_;
  EXPECT_EQ(Send("POST", std::string(kReviews), Draft("web", ""), "stranger"), 403) << body_;
  // The right to ask is not the right to see: an object that may not be read is not explained.
  Must("POST", std::string(kMachines), Machine("mine", ""));
  BindAsker();
  EXPECT_EQ(Send("POST", std::string(kReviews), Draft("web", ""), "asker"), 201) << body_;
  EXPECT_EQ(Send("POST", std::string(kReviews), About("mine"), "asker"), 403) << body_;
}

TEST_F(PlacementReviewing, AQuestionThatMakesNoSenseIsRefused) {
  const std::string reviews(kReviews);
  EXPECT_EQ(Send("POST", reviews, R"({"spec":{}})"), 422) << body_;
  EXPECT_EQ(Send("POST", reviews, R"({"spec":{"objectRef":{"kind":"Secret","name":"x"}}})"), 400);
  EXPECT_EQ(Send("POST", reviews, R"({"spec":{"object":{"kind":"Machine"}}})"), 400) << body_;
  EXPECT_EQ(
      Send("POST",
           reviews,
           R"({"spec":{"object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}}})"),
      400)
      << body_;
  EXPECT_EQ(Send("POST", reviews, Draft("web", R"(,"power":"Maybe")")), 422) << body_;
  EXPECT_EQ(Send("POST", "/apis/berth.dev/v1alpha1/placementreviews", Draft("web", "")), 400);
  EXPECT_EQ(Send("POST",
                 reviews,
                 R"({"spec":{"object":{"apiVersion":"compute.ironcore.dev/v1alpha1","kind":)"
                 R"("Machine","metadata":{"name":"x","namespace":"other"},)"
                 R"("spec":{"machineClassRef":{"name":"small"}}}}})"),
            400)
      << body_;
}

}  // namespace
}  // namespace berth::app
