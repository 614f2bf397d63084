// SPDX-License-Identifier: Apache-2.0
// Defends what an operator does after a restore: orphans are listed and adopted only as manifests
// describe them, and mass deletions are approved with the risk named, for once.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

const std::string kCompute = "/apis/compute.ironcore.dev/v1alpha1";
const std::string kPool = kCompute + "/machinepools/alpha";
const std::string kPoolBody =
    R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool",)"
    R"("metadata":{"name":"alpha","uid":"u-1"},"status":{"agent":{"mode":"Session"}}})";
const std::string kMachines = kCompute + "/namespaces/shop/machines";
const std::string kOnPool =
    kCompute + "/machines?fieldSelector=status.placement.poolUID%3Du-1&limit=500";
const std::string kManifest = R"(
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: web, namespace: shop, uid: other, resourceVersion: "7", annotations: {a: b}}
spec: {machineClassRef: {name: small}}
status: {state: Running}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: elsewhere, namespace: shop}
spec: {machineClassRef: {name: small}}
)";

std::string Machine(const std::string& name, const std::string& rest) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
         name + R"(","namespace":"shop")" + rest + "}";
}
std::string List(const std::string& items) {
  return R"({"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"9"},"items":[)" +
         items + "]}";
}

class PoolAdoptTest : public CommandTest {
 protected:
  PoolAdoptTest() {
    server().answers["GET " + kCompute] = {};
    server().On("GET " + kCompute,
                R"({"kind":"APIResourceList","groupVersion":"compute.ironcore.dev/v1alpha1",)"
                R"("resources":[{"name":"machines","singularName":"machine","namespaced":true,)"
                R"("kind":"Machine","verbs":["create","get","list","patch"]},{"name":)"
                R"("machinepools","singularName":"machinepool","namespaced":false,"kind":)"
                R"("MachinePool","verbs":["get","list","patch"]}]})");
    server().On("GET " + kPool, kPoolBody);
  }
  void Orphans(const std::string& items) {
    server().On("GET " + kPool + "/usage", R"({"kind":"Usage","orphans":[)" + items + "]}");
  }
  static std::string Orphan(const std::string& name, const std::string& uid) {
    return R"({"kind":"Machine","namespace":"shop","name":")" + name + R"(","uid":")" + uid +
           R"(","state":"Running"})";
  }
};

TEST_F(PoolAdoptTest, R4_3_AdoptWithoutAManifestListsTheOrphans) {
  Orphans(Orphan("web", "o-1"));
  const auto ended = Run({"pool", "adopt", "alpha"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "KIND      NAMESPACE   NAME   UID   STATE\n"
            "Machine   shop        web    o-1   Running\n");
  EXPECT_EQ(Run({"pool", "adopt", "alpha", "o-9"}).code, 3) << "no orphan of that UID";
}

TEST_F(PoolAdoptTest, R4_3_AdoptCreatesUnderTheUidThatTheHostKnowsAndWaitsForIt) {
  Orphans(Orphan("web", "o-1") + "," + Orphan("db", "o-2"));
  server().On("POST " + kMachines + "?fieldManager=berth", Machine("web", "}"), 201);
  server().On("GET " + kMachines + "?fieldSelector=metadata.name%3Dweb",
              List(Machine("web", R"(},"status":{"placement":{"poolUID":"u-1"}})")));
  const auto ended = Run({"pool", "adopt", "alpha", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web adopted\n");
  EXPECT_EQ(ended.err, "Machine shop/db (o-2) is not described, and is left alone\n");
  const auto sent = meta::ParseJson(server().Last("POST").body);
  ASSERT_TRUE(sent.ok()) << server().Last("POST").body;
  EXPECT_EQ(sent->GetString({"metadata", "annotations", "berth.dev/adopt"}), "o-1");
  EXPECT_EQ(sent->GetString({"metadata", "annotations", "a"}), "b");
  EXPECT_EQ(sent->GetString({"spec", "machinePoolRef", "name"}), "alpha");
  EXPECT_EQ(sent->GetString({"spec", "machineClassRef", "name"}), "small");
  EXPECT_EQ(sent->Find("status"), nullptr);
  EXPECT_EQ(sent->Get({"metadata", "uid"}), nullptr);
  EXPECT_EQ(sent->Get({"metadata", "resourceVersion"}), nullptr);
}

TEST_F(PoolAdoptTest, R4_3_AdoptOfWhatNoManifestDescribesChangesNothing) {
  Orphans(Orphan("db", "o-2"));
  const auto ended = Run({"pool", "adopt", "alpha", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("no manifest describes any of the 1 orphans"), std::string::npos)
      << ended.err;
  EXPECT_EQ(server().Last("POST").line, "");
  Orphans("");
  server().answers["GET " + kPool + "/usage"] = {};
  Orphans("");
  EXPECT_EQ(Run({"pool", "adopt", "alpha"}).out,
            "machinepool.compute.ironcore.dev/alpha has nothing that the server does not know\n");
}

TEST_F(PoolAdoptTest, R4_3_AdoptDoesNotClaimThatNothingIsThereOfAPoolThatSaysOtherwise) {
  const auto say = [this](const std::string& status) {
    server().answers["GET " + kPool] = {};
    server().On("GET " + kPool,
                R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool","metadata":)"
                R"({"name":"alpha","uid":"u-1"},"status":{"conditions":[{"type":"Orphans",)"
                R"("status":")" +
                    status + R"(","message":"1024 or more"}]}})");
  };
  Orphans("");
  say("Unknown");
  const auto cut = Run({"pool", "adopt", "alpha"});
  EXPECT_EQ(cut.code, 5);
  EXPECT_EQ(cut.out, "");
  EXPECT_NE(cut.err.find("alpha lists no orphans, and may have some: 1024 or more"),
            std::string::npos)
      << cut.err;
  EXPECT_NE(cut.err.find("next: adopt or purge"), std::string::npos) << cut.err;
  say("True");
  const auto away = Run({"pool", "adopt", "alpha"});
  EXPECT_EQ(away.code, 0) << away.err;
  EXPECT_EQ(
      away.out,
      "machinepool.compute.ironcore.dev/alpha lists no orphans now; the last that was said of "
      "them: 1024 or more\n");
  say("False");
  EXPECT_EQ(Run({"pool", "adopt", "alpha"}).code, 0);
}

TEST_F(PoolAdoptTest, R4_3_AdoptAsADryRunAsksTheServerAndWaitsForNothing) {
  Orphans(Orphan("web", "o-1"));
  server().On("POST " + kMachines + "?fieldManager=berth&dryRun=All", Machine("web", "}"), 201);
  const auto ended = Run({"pool", "adopt", "alpha", "o-1", "-f", "-", "--dry-run"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web adopted (server dry run)\n");
}

TEST_F(PoolAdoptTest, R4_3_DeletionsAreApprovedWithTheRiskNamedAndUntilTheyAreDone) {
  server().On("GET " + kOnPool,
              List(Machine("web", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z"})") + "," +
                   Machine("stays", "}") + "," +
                   Machine("moved", R"(},"status":{"placement":{"release":"Drain"}})")));
  const auto dry = Run({"pool", "approve-deletions", "alpha", "--dry-run"});
  EXPECT_EQ(dry.out,
            "machinepool.compute.ironcore.dev/alpha: 2 of 3 are to be deleted: shop/web, "
            "shop/moved\n");
  const auto asked = Run({"pool", "approve-deletions", "alpha"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("cannot be undone"), std::string::npos) << asked.err;
  EXPECT_EQ(server().Last("PATCH").line, "");
  server().On("PATCH " + kPool + "?fieldManager=berth", kPoolBody);
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha",
              List(kPoolBody));
  const auto ended = Run({"pool", "approve-deletions", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/approve-deletions":"true"}}})");
  EXPECT_EQ(ended.out, "machinepool.compute.ironcore.dev/alpha has deleted what was approved\n");
  EXPECT_EQ(Run({"pool", "approve-deletions", "alpha", "--withdraw"}).code, 0);
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/approve-deletions":null}}})");
}

}  // namespace
}  // namespace berth::cli
