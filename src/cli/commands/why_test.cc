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

TEST_F(WhyTest, FitNeedsSomethingToPlace) {
  EXPECT_EQ(Run({"fit"}).code, 2);
  const auto ended =
      Run({"fit", "-f", "-"}, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("nothing in there is placed"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace berth::cli
