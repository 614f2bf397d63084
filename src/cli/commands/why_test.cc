// SPDX-License-Identifier: Apache-2.0
// Defends: why and fit ask the right question and show the whole answer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

const std::string kAsk = "POST /apis/berth.dev/v1alpha1/namespaces/";
const std::string kStrict = "/placementreviews?fieldValidation=Strict";

const std::string kPlaced =
    R"({"apiVersion":"berth.dev/v1alpha1","kind":"PlacementReview","metadata":{},"spec":{},)"
    R"("status":{"verdict":"Placed","pool":"alpha","message":"is on pool alpha and would go there again)"
    R"x( (2 of 5 pools fit; room for 17)","pools":5,"fitting":2,"room":17,)x"
    R"("failed":[{"rule":"Taint","pools":1,"message":"have a taint that is not tolerated"},)"
    R"({"rule":"Room","pools":2,"message":"have too little room"}],"scarce":{"cpu":2,"memory":1},)"
    R"("nearest":{"pool":"gamma","rule":"Room","missing":{"cpu":"1500m","memory":"2Gi"}},)"
    R"("ranked":[{"pool":"alpha","score":200,"volumePools":["alpha-disks"]},)"
    R"({"pool":"beta","score":20,"preference":-5,"reluctance":"PreferNoSchedule"}]}})";

const std::string kRefused =
    R"({"apiVersion":"berth.dev/v1alpha1","kind":"PlacementReview","metadata":{},"spec":{},)"
    R"("status":{"verdict":"NoPool","message":"none of 1 pools takes it","pools":1,)"
    R"("failed":[{"rule":"Cordoned","pools":1,"message":"are cordoned"}],)"
    R"("nearest":{"pool":"alpha","rule":"Cordoned"},)"
    R"("refusals":[{"pool":"alpha","reason":"NoDisk","message":"disk full"}]}})";

const std::string kFits =
    R"({"apiVersion":"berth.dev/v1alpha1","kind":"PlacementReview","metadata":{},"spec":{},)"
    R"("status":{"verdict":"Fits","message":"would be placed on pool alpha","pool":"alpha","room":3}})";

const std::string kMachine =
    "apiVersion: compute.ironcore.dev/v1alpha1\n"
    "kind: Machine\n"
    "metadata: {name: web, namespace: shop}\n"
    "spec: {machineClassRef: {name: small}}\n";

class WhyTest : public CommandTest {};

TEST_F(WhyTest, ShowsRulesNearestPoolAndRanking) {
  server().On(kAsk + "shop" + kStrict, kPlaced, 201);
  const auto ended = Run({"why", "machine/web", "-n", "shop"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "machine.compute.ironcore.dev/web: is on pool alpha and would go there again (2 of 5 "
            "pools fit; room for 17)\n"
            "\n"
            "RULE     POOLS   MEANING\n"
            "Taint    1       have a taint that is not tolerated\n"
            "Room     2       have too little room (2 cpu, 1 memory)\n"
            "(none)   2       pass every rule\n"
            "nearest of the others: gamma, which lacks 1500m cpu, 2Gi memory\n"
            "\n"
            "RANK   POOL    SCORE   PREFERENCE   NOTE\n"
            "1      alpha   200     0            is here; volumes on alpha-disks\n"
            "2      beta    20      -5           PreferNoSchedule\n");
  EXPECT_EQ(server().Last("POST").body,
            R"({"apiVersion":"berth.dev/v1alpha1","kind":"PlacementReview","spec":{"objectRef":)"
            R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","name":"web"}}})");
}

TEST_F(WhyTest, AWordThatIsNoKindIsAMachine) {
  server().On(kAsk + "shop" + kStrict, kPlaced, 201);
  const auto ended = Run({"why", "web", "-n", "shop"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("machine.compute.ironcore.dev/web: is on pool alpha"));
  EXPECT_EQ(Run({"why", "machines"}).code, 2) << "a kind without a name";
}

TEST_F(WhyTest, ShowsWhoRefused) {
  server().On(kAsk + "default" + kStrict, kRefused, 201);
  const auto ended = Run({"why", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "machine.compute.ironcore.dev/web: none of 1 pools takes it\n"
            "\n"
            "RULE       POOLS   MEANING\n"
            "Cordoned   1       are cordoned\n"
            "nearest of the others: alpha, kept out by Cordoned\n"
            "\n"
            "REFUSED BY   REASON   MESSAGE\n"
            "alpha        NoDisk   disk full\n");
}

TEST_F(WhyTest, OfAPoolThatCountsPerClassSaysWhichClassFindsNoRoom) {
  server().On(
      kAsk + "default" + kStrict,
      R"({"apiVersion":"berth.dev/v1alpha1","kind":"PlacementReview","metadata":{},"spec":{},)"
      R"("status":{"verdict":"NoPool","message":"none of 1 pools takes it","pools":1,)"
      R"("failed":[{"rule":"Room","pools":1,"message":"have too little room"}],)"
      R"("scarce":{"class small":1},)"
      R"("nearest":{"pool":"alpha","rule":"Room","missing":{"class small":"1"}}}})",
      201);
  const auto ended = Run({"why", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "machine.compute.ironcore.dev/web: none of 1 pools takes it\n"
            "\n"
            "RULE   POOLS   MEANING\n"
            "Room   1       have too little room (1 class small)\n"
            "nearest of the others: alpha, which lacks room for one more of class small\n");
}

TEST_F(WhyTest, PrintsTheWholeAnswer) {
  server().On(kAsk + "default" + kStrict, kFits, 201);
  const auto one = Run({"why", "machine/web", "-o", "json"});
  EXPECT_EQ(one.code, 0) << one.err;
  const auto parsed = meta::ParseJson(one.out);
  ASSERT_TRUE(parsed.ok()) << one.out;
  EXPECT_EQ(parsed->GetString({"kind"}), "PlacementReview");
  const auto two = Run({"why", "machine/web", "volume/data", "-o", "yaml"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("kind: List"), std::string::npos) << two.out;
}

TEST_F(WhyTest, OnlyWhatIsPlacedCanBeAskedAbout) {
  const auto ended = Run({"why", "secret/x"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("a Secret has no place"), std::string::npos) << ended.err;
  EXPECT_EQ(Run({"why"}).code, 2);
}

TEST_F(WhyTest, EverythingThatThePlacerPlacesCanBeAskedAbout) {
  const std::string storage = "/apis/storage.ironcore.dev/v1alpha1";
  server().answers["GET " + storage] = {};
  server().On("GET " + storage,
              R"({"kind":"APIResourceList","groupVersion":"storage.ironcore.dev/v1alpha1",)"
              R"("resources":[{"name":"volumesnapshots","singularName":"volumesnapshot",)"
              R"("namespaced":true,"kind":"VolumeSnapshot","verbs":["get"]}]})");
  server().On(kAsk + "shop" + kStrict, kFits, 201);
  const auto why = Run({"why", "volumesnapshot/nightly", "-n", "shop"});
  EXPECT_EQ(why.code, 0) << why.err;
  const std::string file = program_.Write("snapshot.yaml",
                                          "apiVersion: storage.ironcore.dev/v1alpha1\n"
                                          "kind: VolumeSnapshot\n"
                                          "metadata: {name: nightly, namespace: shop}\n"
                                          "spec: {volumeRef: {name: data}}\n");
  const auto fit = Run({"fit", "-f", file});
  EXPECT_EQ(fit.code, 0) << fit.err;
  EXPECT_EQ(fit.err, "");
}

TEST_F(WhyTest, WhatDoesNotExistIsNotFound) {
  server().On(kAsk + "default" + kStrict,
              StatusBody(404, "NotFound", "machines.compute.ironcore.dev \"web\" not found"),
              404);
  EXPECT_EQ(Run({"why", "machine/web"}).code, 3);
}

TEST_F(WhyTest, FitSendsTheManifestAndCounts) {
  server().On(kAsk + "shop" + kStrict, kFits, 201);
  const std::string file = program_.Write("web.yaml", kMachine);
  const auto ended = Run({"fit", "-f", file, "--copies", "20"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web: would be placed on pool alpha\n");
  const auto asked = meta::ParseJson(server().Last("POST").body);
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->GetString({"spec", "object", "metadata", "name"}), "web");
  EXPECT_EQ(asked->Get({"spec", "copies"})->as_int(), 20);
}

TEST_F(WhyTest, FitTakesSeveralDocumentsFromStandardInput) {
  server().answers[kAsk + "shop" + kStrict] = {{.status = 201, .body = kFits, .headers = {}},
                                               {.status = 201, .body = kRefused, .headers = {}}};
  const std::string input = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n" +
                            kMachine + "---\n" + kMachine;
  const auto ended = Run({"fit", "-f", "-"}, input);
  EXPECT_EQ(ended.code, 1) << "one does not fit";
  EXPECT_EQ(ended.err, "namespace/shop is left out: it has no place\n");
  EXPECT_NE(
      ended.out.find("would be placed on pool alpha\n\nmachine.compute.ironcore.dev/web: none"),
      std::string::npos)
      << ended.out;
}

// What came with the last question, as "Kind/name".
std::vector<std::string> RelatedOf(const std::string& body) {
  std::vector<std::string> names;
  const auto asked = meta::ParseJson(body);
  const meta::Value* related = asked.ok() ? asked->Get({"spec", "related"}) : nullptr;
  if (related == nullptr) return names;
  for (const meta::Value& draft : related->items()) {
    names.push_back(std::string(draft.GetString({"kind"})) + "/" +
                    std::string(draft.GetString({"metadata", "name"})));
  }
  return names;
}

class FitTest : public CommandTest {
 protected:
  FitTest() {
    Serve("/apis/compute.ironcore.dev/v1alpha1",
          R"({"name":"machines","namespaced":true,"kind":"Machine","verbs":["get"]},)"
          R"({"name":"machineclasses","namespaced":false,"kind":"MachineClass","verbs":["get"]})");
    Serve(
        "/apis/storage.ironcore.dev/v1alpha1",
        R"({"name":"volumes","namespaced":true,"kind":"Volume","verbs":["get"]},)"
        R"({"name":"volumesnapshots","namespaced":true,"kind":"VolumeSnapshot","verbs":["get"]})");
    Serve("/apis/core.ironcore.dev/v1alpha1",
          R"({"name":"reservations","namespaced":true,"kind":"Reservation","verbs":["get"]})");
    Serve("/apis/berth.dev/v1alpha1",
          R"({"name":"machinegroups","namespaced":true,"kind":"MachineGroup","verbs":["get"]},)"
          R"({"name":"machinesets","namespaced":true,"kind":"MachineSet","verbs":["get"]})");
    server().On(kAsk + "shop" + kStrict, kFits, 201);
  }
  void Serve(const std::string& path, const std::string& resources) {
    server().answers["GET " + path] = {};
    server().On("GET " + path,
                R"({"kind":"APIResourceList","groupVersion":")" +
                    path.substr(std::string_view("/apis/").size()) + R"(","resources":[)" +
                    resources + "]}");
  }
  // The drafts that come with each question, in the order of the questions.
  std::vector<std::vector<std::string>> Asked(const std::string& manifests) {
    const auto ended = Run({"fit", "-n", "shop", "-f", "-"}, manifests);
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<std::vector<std::string>> asked;
    for (const auto& request : server().asked) {
      if (request.line.starts_with("POST")) asked.push_back(RelatedOf(request.body));
    }
    return asked;
  }
  static std::string Compute(const std::string& kind, const std::string& rest) {
    return "---\napiVersion: compute.ironcore.dev/v1alpha1\nkind: " + kind + "\n" + rest + "\n";
  }
  static std::string Storage(const std::string& kind, const std::string& rest) {
    return "---\napiVersion: storage.ironcore.dev/v1alpha1\nkind: " + kind + "\n" + rest + "\n";
  }
  using Names = std::vector<std::string>;
};

TEST_F(FitTest, EndsWithOneIfAPoolOfAReservationForAllCannotKeepIt) {
  server().answers[kAsk + "shop" + kStrict] = {
      {.status = 201,
       .body = R"({"status":{"verdict":"FitsPartly","message":"3 of 4 pools would keep it; )"
               R"(not delta"}})",
       .headers = {}}};
  const std::string file = program_.Write("rollout.yaml",
                                          "apiVersion: core.ironcore.dev/v1alpha1\n"
                                          "kind: Reservation\n"
                                          "metadata: {name: rollout, namespace: shop}\n"
                                          "spec: {classRef: {name: small}, mode: All}\n");
  const auto ended = Run({"fit", "-f", file});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out,
            "reservation.core.ironcore.dev/rollout: 3 of 4 pools would keep it; not delta\n");
}

TEST_F(FitTest, AMachineIsAskedAboutWithWhatItNamesAndAVolumeWithItsMachine) {
  const auto asked =
      Asked(Storage("Volume", "metadata: {name: data}\nspec: {volumeClassRef: {name: disk}}") +
            Storage("Volume", "metadata: {name: other}\nspec: {volumeClassRef: {name: disk}}") +
            Compute("MachineClass", "metadata: {name: tiny}\ncapabilities: {cpu: 1}") +
            "---\napiVersion: core.ironcore.dev/v1alpha1\nkind: Reservation\n"
            "metadata: {name: rollout}\nspec: {classRef: {name: tiny}}\n" +
            Compute("Machine",
                    "metadata: {name: db}\nspec: {machineClassRef: {name: tiny}, "
                    "placement: {reservationRef: {name: rollout}}, "
                    "volumes: [{name: data, volumeRef: {name: data}}]}"));
  ASSERT_EQ(asked.size(), 4U) << "a class has no place";
  EXPECT_EQ(asked[0], (Names{"MachineClass/tiny", "Reservation/rollout", "Machine/db"}));
  EXPECT_EQ(asked[1], Names{}) << "nobody names it";
  EXPECT_EQ(asked[2], Names{"MachineClass/tiny"});
  EXPECT_EQ(asked[3], (Names{"Volume/data", "MachineClass/tiny", "Reservation/rollout"}));
}

TEST_F(FitTest, CopiesOfCopiesComeWithTheMachineAndOtherNamespacesDoNot) {
  const auto asked = Asked(
      Storage("Volume", "metadata: {name: a}\nspec: {dataSource: {volumeRef: {name: b}}}") +
      Storage("Volume", "metadata: {name: b}\nspec: {dataSource: {volumeSnapshotRef: {name: c}}}") +
      Storage("VolumeSnapshot", "metadata: {name: c}\nspec: {volumeRef: {name: a}}") +
      "---\napiVersion: berth.dev/v1alpha1\nkind: MachineSet\nmetadata: {name: web}\n"
      "spec: {template: {spec: {volumes: [{name: x, volumeRef: {name: a}}]}}}\n");
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[3], (Names{"Volume/a", "Volume/b", "VolumeSnapshot/c"}));
  EXPECT_EQ(asked[2], (Names{"Volume/a", "Volume/b"}));
}

TEST_F(FitTest, AGroupIsAskedAboutWithItsMembersAndShowsWhoGoesWhere) {
  server().answers[kAsk + "shop" + kStrict] = {
      {.status = 201,
       .body = R"({"status":{"verdict":"Waits","message":"2 of 3 members that are needed can be )"
               R"(placed","wanted":3,"room":2,"members":[{"name":"m-0","pool":"alpha",)"
               R"("volumePools":["disks"]},{"name":"m-1","pool":"beta"},)"
               R"({"name":"m-2","message":"there is no Volume x"}]}})",
       .headers = {}}};
  const std::string member =
      "spec: {machineClassRef: {name: small}, placement: {groupRef: {name: ring}}}";
  const auto ended =
      Run({"fit", "-n", "shop", "-f", "-"},
          "apiVersion: berth.dev/v1alpha1\nkind: MachineGroup\nmetadata: {name: ring}\n"
          "spec: {minMembers: 3}\n" +
              Storage("Volume", "metadata: {name: other}\nspec: {}") +
              Compute("Machine", "metadata: {name: m-0}\n" + member) +
              Compute("Machine", "metadata: {name: m-1}\n" + member));
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(
      ended.out.starts_with("machinegroup.berth.dev/ring: 2 of 3 members that are needed can be "
                            "placed\n"
                            "\n"
                            "MEMBER   POOL    NOTE\n"
                            "m-0      alpha   volumes on disks\n"
                            "m-1      beta\n"
                            "m-2              there is no Volume x\n"))
      << ended.out;
  std::vector<Names> asked;
  for (const auto& request : server().asked) {
    if (request.line.starts_with("POST")) asked.push_back(RelatedOf(request.body));
  }
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[0], (Names{"Machine/m-0", "Machine/m-1"}));
  EXPECT_EQ(asked[2], Names{}) << "a member by itself is not asked about with the others";
}

TEST_F(WhyTest, FitNeedsSomethingToPlace) {
  EXPECT_EQ(Run({"fit"}).code, 2);
  const auto ended =
      Run({"fit", "-f", "-"}, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("nothing in there is placed"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace berth::cli
