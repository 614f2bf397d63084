// SPDX-License-Identifier: Apache-2.0
// Defends: cordon, drain and move ask for exactly what they say, and nothing that would lose data.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kGroup = "/apis/compute.ironcore.dev/v1alpha1";
const std::string kPool = kGroup + "/machinepools/alpha";
const std::string kNaming =
    kGroup + "/machines?fieldSelector=spec.machinePoolRef.name%3Dalpha&limit=500";
const std::string kBound =
    kGroup + "/machines?fieldSelector=status.placement.poolUID%3Du-1&limit=500";

const std::string kStorage = "/apis/storage.ironcore.dev/v1alpha1";

const std::string kSession = R"("agent":{"mode":"Session"})";
// What a poollet that was written for IronCore reports.
const std::string kLegacy = R"("state":"Ready")";

std::string Pool(bool cordoned, const std::string& status = kSession) {
  return std::string(R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool",)") +
         R"("metadata":{"name":"alpha","uid":"u-1"},"spec":{)" +
         (cordoned ? R"("unschedulable":true)" : "") + R"(},"status":{)" + status + "}}";
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
  void Instead(const std::string& line, const std::string& body) {
    server().answers[line] = {{.status = 200, .body = body, .headers = {}}};
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

// Whoever was moved off such a pool would run on there (protocol 4.1).
TEST_F(DrainTest, R4_1_APoolOfTheApiModeIsDrainedOnlyIfItIsEmpty) {
  for (const std::string& status : {kLegacy, std::string(R"("agent":{"mode":"API"})")}) {
    Instead("GET " + kPool, Pool(true, status));
    // One that a user has put there has no placement, and is on it all the same.
    Instead("GET " + kNaming, List(Machine("u-1") + "," + Machine("")));
    const auto refused = Run({"drain", "alpha"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("is in API mode"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("still there: shop/web, shop/web"), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("berth pool fence alpha"), std::string::npos) << refused.err;
    EXPECT_EQ(server().Last("PATCH").line, "") << "nothing is asked to leave";
    Instead("GET " + kNaming, List(""));
    const auto ended = Run({"drain", "alpha"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("alpha drained"), std::string::npos) << ended.out;
  }
}

TEST_F(DrainTest, R4_1_AMachineIsNotMovedOffAPoolOfTheApiMode) {
  server().On("GET " + kGroup + "/namespaces/shop/machines/web", Machine("u-1"));
  server().On("GET " + kPool, Pool(false, kLegacy));
  const auto ended = Run({"move", "machine/web", "-n", "shop"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("machine.compute.ironcore.dev/web cannot be moved"), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("alpha is in API mode"), std::string::npos) << ended.err;
  EXPECT_EQ(server().Last("PATCH").line, "");
}

// Whose room it is, is in the server's books only.
TEST_F(DrainTest, R4_1_WhatIsReservedOnAPoolOfTheApiModeLeavesIt) {
  const std::string core = "/apis/core.ironcore.dev/v1alpha1";
  Instead("GET " + core,
          R"({"kind":"APIResourceList","groupVersion":"core.ironcore.dev/v1alpha1","resources":[)"
          R"({"name":"reservations","singularName":"reservation","namespaced":true,)"
          R"("kind":"Reservation","verbs":["get","list","patch"]}]})");
  const auto room = [](const std::string& pool_uid) {
    return R"({"apiVersion":"core.ironcore.dev/v1alpha1","kind":"Reservation","metadata":)"
           R"({"name":"room","namespace":"shop","uid":"r-1","resourceVersion":"3"},"spec":{},)"
           R"("status":{"placement":{"pool":"alpha","poolUID":")" +
           pool_uid + R"("}}})";
  };
  server().On("GET " + kPool, Pool(true, kLegacy));
  server().On("GET " + kNaming, List(""));
  server().answers["GET " + core +
                   "/reservations?fieldSelector=status.placement.poolUID%3Du-1&limit=500"] = {
      {.status = 200, .body = List(room("u-1")), .headers = {}},
      {.status = 200, .body = List(""), .headers = {}}};
  const std::string path = core + "/namespaces/shop/reservations";
  server().On("PATCH " + path + "/room/status?fieldManager=berth", room("u-1"));
  server().On("GET " + path + "?fieldSelector=metadata.name%3Droom", List(room("")));
  const auto ended = Run({"drain", "alpha", "--timeout=1m"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"resourceVersion":"3"},"status":{"placement":{"release":"Drain"}}})");
  EXPECT_EQ(ended.out,
            "machinepool.compute.ironcore.dev/alpha already cordoned\n"
            "reservation.core.ironcore.dev/room is asked to leave\n"
            "reservation.core.ironcore.dev/room left\n"
            "machinepool.compute.ironcore.dev/alpha drained\n");
}

// Volumes of two namespaces, on a pool that one host reaches and on one that all do.
class HostVolumesTest : public DrainTest {
 protected:
  HostVolumesTest() {
    Instead("GET " + kStorage,
            R"({"kind":"APIResourceList","groupVersion":"storage.ironcore.dev/v1alpha1",)"
            R"("resources":[{"name":"volumes","singularName":"volume","namespaced":true,)"
            R"("kind":"Volume","verbs":["get","list"]},{"name":"volumepools",)"
            R"("singularName":"volumepool","namespaced":false,"kind":"VolumePool",)"
            R"("verbs":["get","list"]}]})");
    server().On("GET " + kPool, Pool(true));
    server().On("GET " + kStorage + "/volumepools?limit=500",
                List(R"({"metadata":{"name":"disks"},"spec":{"reach":"Host"}},)"
                     R"({"metadata":{"name":"ceph"},"spec":{}})"));
    const std::string volumes = Volume("shop", "data", "disks") + "," +
                                Volume("shop", "web-made", "disks") + "," +
                                Volume("shop", "shared", "ceph");
    server().On("GET " + kStorage + "/namespaces/shop/volumes?limit=500", List(volumes));
    server().On("GET " + kStorage + "/volumes?limit=500",
                List(volumes + "," + Volume("other", "shared", "disks")));
  }
  static std::string Volume(const std::string& space,
                            const std::string& name,
                            const std::string& pool) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":")" + space +
           R"("},"spec":{"volumePoolRef":{"name":")" + pool + R"("}}})";
  }
  size_t Asked(const std::string& line) {
    return static_cast<size_t>(std::ranges::count(server().Lines(), line));
  }

  const std::string path_ = kGroup + "/namespaces/shop/machines/web";
  const std::string tied_ = Machine(
      "u-1",
      R"("volumes":[{"name":"a","volumeRef":{"name":"data"}},{"name":"made","ephemeral":{}},)"
      R"({"name":"b","volumeRef":{"name":"shared"}}])");
  const std::string free_ =
      Machine("u-1", R"("volumes":[{"name":"b","volumeRef":{"name":"shared"}},{"name":"c"}])");
};

TEST_F(HostVolumesTest, MachinesWithVolumesOfTheirHostAreNotDrainedUnasked) {
  server().answers["GET " + kBound] = {
      {.status = 200, .body = List(tied_ + "," + free_ + "," + tied_), .headers = {}}};
  const auto refused = Run({"drain", "alpha", "--delete-local-data"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(
      refused.err.find("nowhere else: shop/web (data, web-made), shop/web (data, web-made)\n"),
      std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("--ignore-host-volumes"), std::string::npos) << refused.err;
  EXPECT_EQ(server().Last("PATCH").line, "");
  EXPECT_EQ(Asked("GET " + kStorage + "/volumepools?limit=500"), 1U);
  EXPECT_EQ(Asked("GET " + kStorage + "/volumes?limit=500"), 1U) << "not once for each machine";
}

TEST_F(HostVolumesTest, WhoSaysSoStopsThem) {
  server().answers["GET " + kBound] = {{.status = 200, .body = List(tied_), .headers = {}},
                                       {.status = 200, .body = List(tied_), .headers = {}},
                                       {.status = 200, .body = List(""), .headers = {}}};
  server().On("PATCH " + path_ + "/status?fieldManager=berth", tied_);
  server().On("GET " + kGroup + "/namespaces/shop/machines?fieldSelector=metadata.name%3Dweb",
              List(Machine("")));
  const auto ended = Run({"drain", "alpha", "--ignore-host-volumes", "--timeout=1m"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_NE(ended.out.find("alpha drained"), std::string::npos) << ended.out;
}

TEST_F(HostVolumesTest, AMachineIsNotMovedAwayFromVolumesOfItsHostUnasked) {
  server().On("GET " + path_, tied_);
  server().On("PATCH " + path_ + "/status?fieldManager=berth", tied_);
  const auto refused = Run({"move", "machine/web", "-n", "shop"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("only its host reaches volumes data, web-made"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("--ignore-host-volumes"), std::string::npos) << refused.err;
  EXPECT_EQ(server().Last("PATCH").line, "");
  EXPECT_EQ(Run({"move", "machine/web", "-n", "shop", "--ignore-host-volumes"}).code, 0);
  EXPECT_NE(server().Last("PATCH").line, "");
}

TEST_F(HostVolumesTest, WhoMayNotSeePoolsOfVolumesMovesMachinesAllTheSame) {
  server().On("GET " + path_, tied_);
  server().On("PATCH " + path_ + "/status?fieldManager=berth", tied_);
  server().answers["GET " + kStorage + "/volumepools?limit=500"] = {
      {.status = 403, .body = StatusBody(403, "Forbidden", "no"), .headers = {}}};
  const auto ended = Run({"move", "machine/web", "-n", "shop"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(DrainTest, AMachineIsAskedToMove) {
  server().On("GET " + kPool, Pool(false));
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
