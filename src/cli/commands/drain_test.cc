// SPDX-License-Identifier: Apache-2.0
// Defends: cordon, drain and move ask for exactly what they say, and nothing that would lose data.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kGroup = "/apis/compute.ironcore.dev/v1alpha1";
const std::string kPool = kGroup + "/machinepools/alpha";
const std::string kBound =
    kGroup + "/machines?fieldSelector=status.placement.poolUID%3Du-1&limit=500";

std::string Pool(bool cordoned) {
  return std::string(R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool",)") +
         R"("metadata":{"name":"alpha","uid":"u-1"},"spec":{)" +
         (cordoned ? R"("unschedulable":true)" : "") + "}}";
}

std::string Machine(const std::string& pool_uid, const std::string& spec = "") {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":)"
         R"({"name":"web","namespace":"shop","uid":"m-1","resourceVersion":"7"},"spec":{)" +
         spec + R"(},"status":{"placement":{"pool":"alpha","poolUID":")" + pool_uid + R"("}}})";
}

std::string List(const std::string& items) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachineList",)"
         R"("metadata":{"resourceVersion":"9"},"items":[)" +
         items + "]}";
}

class DrainTest : public CommandTest {
 protected:
  DrainTest() {
    server().answers["GET " + kGroup] = {};
    server().On("GET " + kGroup,
                R"({"kind":"APIResourceList","groupVersion":"compute.ironcore.dev/v1alpha1",)"
                R"("resources":[{"name":"machines","singularName":"machine","namespaced":true,)"
                R"("kind":"Machine","verbs":["get","list","patch"]},{"name":"machinepools",)"
                R"("singularName":"machinepool","namespaced":false,"kind":"MachinePool",)"
                R"("verbs":["get","list","patch"]}]})");
  }
};

TEST_F(DrainTest, CordonPatchesThePoolAndSaysSo) {
  server().On("GET " + kPool, Pool(false));
  server().On("PATCH " + kPool + "?fieldManager=berth", Pool(true));
  const auto ended = Run({"cordon", "alpha"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machinepool.compute.ironcore.dev/alpha cordoned\n");
  EXPECT_EQ(server().Last("PATCH").body, R"({"spec":{"unschedulable":true}})");
}

TEST_F(DrainTest, APoolThatIsAsWantedIsNotWritten) {
  server().On("GET " + kPool, Pool(true));
  EXPECT_EQ(Run({"cordon", "machinepool/alpha"}).out,
            "machinepool.compute.ironcore.dev/alpha already cordoned\n");
  EXPECT_EQ(server().Last("PATCH").line, "");
  server().On("PATCH " + kPool + "?fieldManager=berth", Pool(false));
  EXPECT_EQ(Run({"uncordon", "alpha"}).out, "machinepool.compute.ironcore.dev/alpha uncordoned\n");
  EXPECT_EQ(server().Last("PATCH").body, R"({"spec":{"unschedulable":null}})");
}

TEST_F(DrainTest, OnlyPoolsAreCordoned) {
  const auto ended = Run({"cordon", "machine/web"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("\"Machine\" is not a kind of pool"), std::string::npos) << ended.err;
}

TEST_F(DrainTest, DrainAsksWhatIsThereToLeaveAndWaitsUntilItHas) {
  server().On("GET " + kPool, Pool(true));
  server().answers["GET " + kBound] = {{.status = 200, .body = List(Machine("u-1"))},
                                       {.status = 200, .body = List(Machine("u-1"))},
                                       {.status = 200, .body = List("")}};
  const std::string machine = kGroup + "/namespaces/shop/machines/web";
  server().On("PATCH " + machine + "/status?fieldManager=berth", Machine("u-1"));
  server().On("GET " + kGroup + "/namespaces/shop/machines?fieldSelector=metadata.name%3Dweb",
              List(Machine("u-2")));
  const auto ended = Run({"drain", "alpha", "--timeout=1m"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"resourceVersion":"7"},"status":{"placement":{"release":"Drain"}}})");
  EXPECT_EQ(ended.out,
            "machinepool.compute.ironcore.dev/alpha already cordoned\n"
            "machine.compute.ironcore.dev/web is asked to leave\n"
            "machine.compute.ironcore.dev/web left\n"
            "machinepool.compute.ironcore.dev/alpha drained\n");
}

TEST_F(DrainTest, MachinesWithDisksOnTheirHostAreNotDrainedUnasked) {
  server().On("GET " + kPool, Pool(true));
  server().On("GET " + kBound, List(Machine("u-1", R"("volumes":[{"name":"a","localDisk":{}}])")));
  const auto ended = Run({"drain", "alpha"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("shop/web"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("--delete-local-data"), std::string::npos) << ended.err;
  EXPECT_EQ(server().Last("PATCH").line, "");
}

TEST_F(DrainTest, AMachineIsAskedToMove) {
  const std::string machine = kGroup + "/namespaces/shop/machines/web";
  server().On("GET " + machine, Machine("u-1"));
  server().On("PATCH " + machine + "/status?fieldManager=berth", Machine("u-1"));
  const auto ended = Run({"move", "machine/web", "-n", "shop"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web leaves pool alpha\n");
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"resourceVersion":"7"},"status":{"placement":{"release":"Move"}}})");
}

TEST_F(DrainTest, AMachineWithoutAPoolCannotMove) {
  server().On("GET " + kGroup + "/namespaces/shop/machines/web", Machine(""));
  const auto ended = Run({"move", "machine", "web", "-n", "shop"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("is on no pool yet"), std::string::npos) << ended.err;
}

TEST_F(DrainTest, AJoinTokenNeedsKeyValuePairs) {
  const auto ended = Run({"pool", "join-token", "h", "--label", "zone"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--label: \"zone\" is not KEY=VALUE"), std::string::npos) << ended.err;
}

TEST_F(DrainTest, AJoinTokenIsNotMadeWithWhatNoPoolCanHave) {
  const std::vector<std::pair<std::string, std::string>> kFlags = {
      {"--limit", "memory=abc"}, {"--limit", "cpu=-5"}, {"--label", "zone=a/b"}, {"--zone", "a b"}};
  for (const auto& [flag, value] : kFlags) {
    const auto ended = Run({"pool", "join-token", "h", flag, value});
    EXPECT_EQ(ended.code, 2) << flag << " " << value;
    const std::string wrong = value.substr(value.find('=') + 1);
    EXPECT_NE(ended.err.find(wrong), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(" must "), std::string::npos) << "says what is allowed: " << ended.err;
  }
}

TEST_F(DrainTest, ZoneAndRegionOfAJoinTokenAreTheLabelsThatTheServerGoesBy) {
  for (const std::string place : {"zone", "region"}) {
    const std::string label = "topology.ironcore.dev/" + place;
    const auto bad = Run({"pool", "join-token", "h", "--" + place, "a/b"});
    EXPECT_NE(bad.err.find("label \"" + label + "=a/b\""), std::string::npos) << bad.err;
    const auto twice = Run({"pool", "join-token", "h", "--" + place, "a", "--label", label + "=b"});
    EXPECT_EQ(twice.code, 2);
    EXPECT_NE(twice.err.find("--" + place + " \"a\": --label says " + label + "=b"),
              std::string::npos)
        << twice.err;
  }
}

}  // namespace
}  // namespace berth::cli
