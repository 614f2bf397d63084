// SPDX-License-Identifier: Apache-2.0
// Defends: diff shows what apply would change and changes nothing, and scale sends one number.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kMachines = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
const std::string kSecrets = "/api/v1/namespaces/default/secrets";
const std::string kTry = "?fieldManager=berth&dryRun=All&fieldValidation=Strict";

constexpr std::string_view kManifest = R"(apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata:
  name: web
spec:
  power: "On"
)";

std::string Machine(const std::string& power, int revision) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":)"
         R"("web","namespace":"default","generation":)" +
         std::to_string(revision) + R"(,"resourceVersion":")" + std::to_string(revision) +
         R"("},"spec":{"power":")" + power + R"("}})";
}

std::string Secret(const std::string& password, const std::string& annotation = "") {
  return R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"login",)" + annotation +
         R"("namespace":"default"},"data":{"password":")" + password + R"(","user":"YQ=="}})";
}

class DiffTest : public CommandTest {};

TEST_F(DiffTest, ShowsWhatWouldChangeAndEndsWithOne) {
  server().On("GET " + kMachines + "/web", Machine("Off", 5));
  server().On("PATCH " + kMachines + "/web" + kTry, Machine("On", 6));
  const auto ended = Run({"diff", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(ended.out,
            "--- machine.compute.ironcore.dev/web (as it is)\n"
            "+++ machine.compute.ironcore.dev/web (after apply)\n"
            "@@ -4,4 +4,4 @@\n"
            "   name: web\n"
            "   namespace: default\n"
            " spec:\n"
            "-  power: \"Off\"\n"
            "+  power: \"On\"\n");
}

TEST_F(DiffTest, NothingToChangeEndsWithNought) {
  server().On("GET " + kMachines + "/web", Machine("On", 5));
  server().On("PATCH " + kMachines + "/web" + kTry, Machine("On", 6));
  const auto ended = Run({"diff", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST_F(DiffTest, WhatDoesNotExistIsAllNew) {
  server().On("POST " + kMachines + kTry, Machine("On", 6), 201);
  const auto ended = Run({"diff", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("--- machine.compute.ironcore.dev/web (does not exist)\n"))
      << ended.out;
  EXPECT_TRUE(ended.out.contains("\n+  power: \"On\"\n")) << ended.out;
}

TEST_F(DiffTest, AFailureDoesNotLookLikeADifference) {
  server().On("GET " + kMachines + "/web", Machine("Off", 5));
  server().On("PATCH " + kMachines + "/web" + kTry,
              StatusBody(422, "Invalid", "Machine web is invalid"),
              422);
  const auto ended = Run({"diff", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.err.starts_with("error: standard input: Machine web is invalid\n"))
      << ended.err;
  EXPECT_EQ(Run({"diff"}).code, 2);
}

TEST_F(DiffTest, ValuesOfSecretsAreNotShown) {
  const std::string remembered =
      R"("annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":)"
      R"(\"c2VjcmV0\"}}"},)";
  server().On("GET " + kSecrets + "/login", Secret("b2xk", remembered));
  server().On("PATCH " + kSecrets + "/login" + kTry, Secret("c2VjcmV0", remembered));
  const auto ended = Run({"diff", "-f", "-"},
                         "{apiVersion: v1, kind: Secret, metadata: {name: login}, data: "
                         "{password: c2VjcmV0, user: YQ==}}");
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_TRUE(
      ended.out.contains("-  password: '*** (before)'\n+  password: '*** (after)'\n"
                         "   user: '***'\n"))
      << ended.out;
  for (const std::string_view hidden : {"b2xk", "c2VjcmV0", "YQ=="}) {
    EXPECT_FALSE(ended.out.contains(hidden)) << ended.out;
  }
}

class ScaleTest : public DiffTest {
 protected:
  ScaleTest() {
    server().On("GET /apis/berth.dev/v1alpha1",
                R"({"kind":"APIResourceList","groupVersion":"berth.dev/v1alpha1","resources":[)"
                R"({"name":"machinesets","singularName":"machineset","namespaced":true,"kind":)"
                R"("MachineSet","verbs":["get","list"]}]})");
    server().On("GET " + scale_, R"({"metadata":{"resourceVersion":"7"},"spec":{"replicas":3}})");
    server().On("PATCH " + scale_ + "?fieldManager=berth", R"({"spec":{"replicas":5}})");
  }
  const std::string scale_ = "/apis/berth.dev/v1alpha1/namespaces/default/machinesets/shop/scale";
};

TEST_F(ScaleTest, SendsTheNumber) {
  const auto ended = Run({"scale", "machineset", "shop", "--replicas=5"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machineset.berth.dev/shop scaled\n");
  EXPECT_EQ(server().Last("PATCH").body, R"({"spec":{"replicas":5}})");
}

TEST_F(ScaleTest, OnlyFromTheExpectedNumber) {
  const auto refused = Run({"scale", "machineset/shop", "--current-replicas=2", "--replicas=5"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_TRUE(refused.err.starts_with(
      "error: machineset.berth.dev/shop has 3 replicas, not the 2 of --current-replicas\n"))
      << refused.err;
  EXPECT_EQ(Run({"scale", "machineset/shop", "--current-replicas=3", "--replicas=5"}).code, 0);
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"resourceVersion":"7"},"spec":{"replicas":5}})");
}

TEST_F(ScaleTest, SaysWhatCannotBe) {
  EXPECT_EQ(Run({"scale", "machineset", "shop"}).err,
            "error: --replicas says how many and is missing\n"
            "next: berth scale machineset NAME --replicas N\n");
  EXPECT_EQ(Run({"scale", "machineset", "shop", "--replicas=-1"}).err,
            "error: --replicas -1: expected 0 to 2147483647\n");
  const auto ended = Run({"scale", "machine", "web", "--replicas=2"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.err.starts_with("error: a Machine has no replicas\n")) << ended.err;
}

}  // namespace
}  // namespace berth::cli
