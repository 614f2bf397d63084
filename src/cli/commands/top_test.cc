// SPDX-License-Identifier: Apache-2.0
// Defends: top shows what is promised, free and used, in the order that was asked for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

const std::string kCompute = "/apis/compute.ironcore.dev/v1alpha1";
const std::string kUsage =
    R"({"apiVersion":"berth.dev/v1alpha1","kind":"Usage","metadata":{"name":")";

std::string List(const std::string& items) {
  return R"({"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"9"},"items":[)" +
         items + "]}";
}
class TopTest : public CommandTest {
 protected:
  TopTest() {
    server().answers["GET " + kCompute] = {};
    server().On("GET " + kCompute,
                R"({"kind":"APIResourceList","groupVersion":"compute.ironcore.dev/v1alpha1",)"
                R"("resources":[{"name":"machines","singularName":"machine","namespaced":true,)"
                R"("kind":"Machine","verbs":["get","list"]},{"name":"machinepools",)"
                R"("singularName":"machinepool","namespaced":false,"kind":"MachinePool",)"
                R"("verbs":["get","list"]}]})");
    server().On("GET " + kCompute + "/machinepools?limit=500",
                List(kUsage +
                     R"(alpha"},"contact":"Connected","heartbeatAgeMs":412,"objects":3,)"
                     R"("capacity":{"cpu":"8","memory":"32Gi"},)"
                     R"("allocated":{"cpu":"3","memory":"3Gi"},)"
                     R"("free":{"cpu":"5","memory":"29Gi"},)"
                     R"("used":{"cpu":"1500m","memory":"2Gi"}},)" +
                     kUsage +
                     R"(beta"},"contact":"Silent","heartbeatAgeMs":61000,"objects":4,)"
                     R"("capacity":{"cpu":"4","storage":"64Gi"},)"
                     R"("allocated":{"cpu":"4","storage":"16Gi"},)"
                     R"("free":{"cpu":"0","storage":"48Gi"}})"));
  }
};

TEST_F(TopTest, PoolsShowWhatIsPromisedAndUsed) {
  const auto ended = Run({"top", "pools"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(
      ended.out,
      "NAME    KIND          CONTACT     HEARTBEAT   OBJECTS   CPU   CPU%   MEMORY     MEMORY%   "
      "STORAGE     STORAGE%   USED CPU   USED MEMORY\n"
      "alpha   MachinePool   Connected   0.4s ago    3         3/8   38%    3Gi/32Gi   9%        "
      "-           -          1500m      2Gi\n"
      "beta    MachinePool   Silent      61.0s ago   4         4/4   100%   -          -         "
      "16Gi/64Gi   25%        -          -\n");
}

TEST_F(TopTest, WhoMayNotReadThemIsTold) {
  server().answers["GET " + kCompute + "/machinepools?limit=500"] = {};
  server().On("GET " + kCompute + "/machinepools?limit=500",
              StatusBody(403, "Forbidden", "ann cannot get machinepools/usage"),
              403);
  const auto ended = Run({"top", "pools", "--no-headers"});
  EXPECT_NE(ended.code, 0);
  EXPECT_EQ(ended.out, "");
  EXPECT_NE(ended.err.find("ann cannot get machinepools/usage"), std::string::npos) << ended.err;
}

TEST_F(TopTest, PoolsAreSortedByTheShareThatIsPromised) {
  const auto by_cpu = Run({"top", "pools", "--sort-by", "cpu", "--no-headers"});
  EXPECT_EQ(by_cpu.code, 0) << by_cpu.err;
  EXPECT_LT(by_cpu.out.find("beta"), by_cpu.out.find("alpha")) << by_cpu.out;
  const auto by_memory = Run({"top", "pools", "--sort-by", "memory", "--no-headers"});
  EXPECT_LT(by_memory.out.find("alpha"), by_memory.out.find("beta")) << by_memory.out;
  const auto wide = Run({"top", "pools", "-o", "wide"});
  EXPECT_NE(wide.out.find("CPU FREE"), std::string::npos) << wide.out;
  EXPECT_NE(wide.out.find("29Gi"), std::string::npos) << wide.out;
  EXPECT_EQ(Run({"top", "pools", "--sort-by", "colour"}).code, 2);
}

TEST_F(TopTest, MachinesShowWhatTheyUse) {
  server().On("GET " + kCompute + "/namespaces/shop/machines?limit=500",
              List(kUsage +
                   R"(db","namespace":"shop"},"pool":"alpha","state":"Running",)"
                   R"("used":{"cpu":"250m","memory":"1Gi","disk":"2Gi",)"
                   R"("networkReceivedBytes":7,"networkSentBytes":9}},)" +
                   kUsage + R"(new","namespace":"shop"}},)" + kUsage +
                   R"(web","namespace":"shop"},"pool":"beta","state":"Running",)"
                   R"("used":{"cpu":"2","memory":"236460Ki","networkReceivedBytes":1234567}})"));
  const auto ended = Run({"top", "machines", "-n", "shop", "--sort-by", "cpu"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "NAME   POOL    STATE     CPU    MEMORY    DISK   RECEIVED   SENT\n"
            "web    beta    Running   2      230.9Mi   0      1.2Mi      0\n"
            "db     alpha   Running   250m   1Gi       2Gi    7          9\n"
            "new    -       -         -      -         -      -          -\n");
}

TEST_F(TopTest, ProgramsGetTheWholeList) {
  const auto ended = Run({"top", "pools", "-o", "json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto list = meta::ParseJson(ended.out);
  ASSERT_TRUE(list.ok()) << ended.out;
  ASSERT_EQ(list->Find("items")->items().size(), 2U);
  EXPECT_EQ(list->Find("items")->items()[0].GetString({"metadata", "name"}), "alpha");
}

}  // namespace
}  // namespace berth::cli
