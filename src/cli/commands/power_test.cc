// SPDX-License-Identifier: Apache-2.0
// Defends: the switch of a machine is turned once and in the right order, and "runs" and "is off"
// are said of the state after it, not of the one before.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kMachines = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
const std::string kWeb = kMachines + "/web";
const std::string kLook = "GET " + kWeb;
const std::string kList = "GET " + kMachines + "?fieldSelector=metadata.name%3Dweb";
const std::string kWatch =
    kMachines +
    "?fieldSelector=metadata.name%3Dweb&watch=true&allowWatchBookmarks=true&resourceVersion=9";
const std::string kPatch = "PATCH " + kWeb + "?fieldManager=berth";
const std::string kLabel = "machine.compute.ironcore.dev/web";

struct Seen {
  std::string power = "On";
  std::string state = "Running";
  int observed = 2;
  std::string pool_uid = "u-1";
  std::string why_not_ready;  // the reason of its condition Ready; "": it has none
};

std::string Conditions(const Seen& seen) {
  if (seen.why_not_ready.empty()) return "";
  return R"(,"conditions":[{"type":"Ready","status":"False","reason":")" + seen.why_not_ready +
         R"("}])";
}

// At generation 2.
std::string Machine(const Seen& seen) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":)"
         R"("web","namespace":"default","uid":"m-1","generation":2},"spec":{"power":")" +
         seen.power + R"("},"status":{"state":")" + seen.state + R"(","observedGeneration":)" +
         std::to_string(seen.observed) + R"(,"placement":{"poolUID":")" + seen.pool_uid + R"("})" +
         Conditions(seen) + "}}";
}

std::string List(const Seen& seen) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachineList",)"
         R"("metadata":{"resourceVersion":"9"},"items":[)" +
         Machine(seen) + "]}";
}

class PowerTest : public CommandTest {
 protected:
  PowerTest() { program_.server.On(kPatch, Machine({})); }

  // Bodies of the changes, in their order.
  std::vector<std::string> Switched() const {
    std::vector<std::string> bodies;
    for (const auto& asked : program_.server.asked) {
      if (asked.line == kPatch) bodies.push_back(asked.body);
    }
    return bodies;
  }
  // The answers to one look after another at the machine's list; watches are silent.
  void Becomes(const std::vector<Seen>& states) {
    for (const Seen& seen : states) program_.server.On(kList, List(seen));
    program_.server.watches[kWatch] = {};
  }
  const std::string on_ = R"({"spec":{"power":"On"}})";
  const std::string off_ = R"({"spec":{"power":"Off"}})";
};

TEST_F(PowerTest, StopSwitchesOffAndOnlyOnce) {
  program_.server.On(kLook, Machine({}));
  auto ended = Run({"stop", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, kLabel + " stops\n");
  EXPECT_EQ(Switched(), std::vector{off_});
  program_.server.answers[kLook].clear();
  program_.server.On(kLook, Machine({.power = "Off"}));
  EXPECT_EQ(Run({"stop", "machine/web"}).out, kLabel + " is off already\n");
  EXPECT_EQ(Switched(), std::vector{off_});
}

TEST_F(PowerTest, StopWaitsForAStateAfterTheSwitch) {
  program_.server.On(kLook, Machine({}));
  Becomes({{.power = "Off", .state = "Shutdown", .observed = 1}});
  auto ended = Run({"stop", "web", "--wait", "--timeout=1s"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("timed out waiting for the end of " + kLabel), std::string::npos)
      << ended.err;
  program_.server.answers[kList].clear();
  Becomes({{.power = "Off", .state = "Shutdown", .observed = 2}});
  EXPECT_EQ(Run({"stop", "web", "--wait"}).out, kLabel + " is off\n");
}

TEST_F(PowerTest, WhatIsOnNoPoolIsOff) {
  program_.server.On(kLook, Machine({.state = "Pending", .pool_uid = ""}));
  Becomes({{.power = "Off", .state = "Pending", .observed = 0, .pool_uid = ""}});
  EXPECT_EQ(Run({"stop", "web", "--wait"}).out, kLabel + " is off\n");
}

TEST_F(PowerTest, StartSwitchesOnAndWaitsIfAsked) {
  program_.server.On(kLook, Machine({.power = "Off", .state = "Shutdown"}));
  EXPECT_EQ(Run({"start", "web"}).out, kLabel + " starts\n");
  Becomes({{}});
  EXPECT_EQ(Run({"start", "web", "--wait"}).out, kLabel + " runs\n");
  EXPECT_EQ(Switched(), (std::vector{on_, on_}));
}

std::string Pulling(const std::string& message) {
  return R"({"type":"MODIFIED","object":{"apiVersion":"compute.ironcore.dev/v1alpha1","kind":)"
         R"("Machine","metadata":{"name":"web","namespace":"default","uid":"m-1","generation":2,)"
         R"("resourceVersion":"10"},"spec":{"power":"On"},"status":{"state":"Pending",)"
         R"("observedGeneration":2,"placement":{"poolUID":"u-1"},"conditions":[{"type":)"
         R"("ImageReady","status":"False","reason":"Pulling","message":")" +
         message + R"("}]}}})" + "\n";
}

TEST_F(PowerTest, StartShowsHowFarTheImageIs) {
  program_.server.On(kLook, Machine({.power = "Off", .state = "Shutdown"}));
  program_.server.On(kList, List({.state = "Pending"}));
  const std::string running = R"({"type":"MODIFIED","object":)" + Machine({}) + "}\n";
  program_.server.watches[kWatch].chunks = {Pulling("4 % of 9.0 MiB"),
                                            Pulling("5 % of 9.0 MiB"),
                                            Pulling("38 % of 9.0 MiB"),
                                            Pulling("\\u001b[31mhostile"),
                                            Pulling("100 % of 9.0 MiB, unpacking"),
                                            Pulling("7 % of 9.0 MiB unpacked"),
                                            Pulling("8 % of 9.0 MiB unpacked") + running};
  auto ended = Run({"start", "web", "--wait"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, kLabel + " runs\n");
  EXPECT_EQ(ended.err,
            kLabel + ": image 4 % of 9.0 MiB\n" + kLabel + ": image 38 % of 9.0 MiB\n" + kLabel +
                ": image 100 % of 9.0 MiB, unpacking\n" + kLabel +
                ": image 7 % of 9.0 MiB unpacked\n");
  program_.environment.terminal.out_is_terminal = true;
  ended = Run({"start", "web", "--wait"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_NE(ended.out.find("boot          [####                ] on its host: looks for image"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("image         [#######             ] 38 % of 9.0 MiB"),
            std::string::npos)
      << ended.out;
  EXPECT_EQ(ended.out.find("\x1b[31m"), std::string::npos) << ended.out;
  EXPECT_TRUE(ended.out.ends_with("\r\x1b[K" + kLabel + " runs\n")) << ended.out;
}

std::string With(const std::string& type, const std::string& status, const std::string& message) {
  return R"({"type":"MODIFIED","object":{"apiVersion":"compute.ironcore.dev/v1alpha1","kind":)"
         R"("Machine","metadata":{"name":"web","namespace":"default","uid":"m-1","generation":2,)"
         R"("resourceVersion":"10"},"spec":{"power":"On"},"status":{"state":"Pending",)"
         R"("observedGeneration":2,"placement":{"poolUID":"u-1"},"conditions":[{"type":")" +
         type + R"(","status":")" + status + R"(","reason":"R","message":")" + message +
         R"("}]}}})" + "\n";
}

TEST_F(PowerTest, StartShowsEachStepUntilTheConsoleSpeaks) {
  const std::string log = kWeb + "/log";
  program_.server.On(kLook, Machine({.power = "Off", .state = "Shutdown"}));
  program_.server.On("GET " + log, "Hello from the boot before\r\n");
  program_.server.On(kList, List({.state = "Pending", .pool_uid = ""}));
  program_.server.watches[kWatch].chunks = {
      With("PrerequisitesMet", "False", "data: volume data is Pending"),
      With("ImageReady", "True", ""),
      R"({"type":"MODIFIED","object":)" + Machine({}) + "}\n"};
  program_.server.watches[log + "?follow=true"].chunks = {
      "Hello from the ", "boot before\r\n\x1b[2Jnoise\n", "Hello from\x1b[31m red\r\n"};
  auto ended = Run({"start", "web", "--wait", "--console", "Hello from"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with(kLabel + " runs\nconsole       Hello from")) << ended.out;
  EXPECT_TRUE(ended.out.ends_with(" red\n")) << ended.out;
  EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << "a guest does not write on our terminal";
  EXPECT_EQ(ended.err,
            kLabel + ": waits for a host\n" + kLabel +
                ": on its host, waits for data: volume data is Pending\n" + kLabel +
                ": its image is there, its disks are made\n" + kLabel +
                ": started, its console is silent yet\n");
  program_.environment.terminal.out_is_terminal = true;
  ended = Run({"start", "web", "--wait", "--console", "Hello from"});
  for (const std::string bar : {"[                    ] waits for a host",
                                "[####                ] on its host, waits for data",
                                "[########            ] its image is there",
                                "[################    ] started"}) {
    EXPECT_NE(ended.out.find("boot          " + bar), std::string::npos) << ended.out;
  }
}

TEST_F(PowerTest, AConsoleThatStaysSilentIsNotWaitedForForever) {
  program_.server.On(kLook, Machine({}));
  Becomes({{}});
  program_.server.watches[kWeb + "/log?follow=true"].chunks = {"something else\n"};
  const auto ended = Run({"start", "web", "--wait", "--console", "Hello", "--timeout=1s"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("timed out waiting for the console of web to say \"Hello\""),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(Run({"start", "web", "--console", "Hello"}).code, 2) << "there is no waiting";
}

TEST_F(PowerTest, AMachineThatRunsIsLeftAlone) {
  program_.server.On(kLook, Machine({}));
  EXPECT_EQ(Run({"start", "web"}).out, kLabel + " is on already\n");
  EXPECT_TRUE(Switched().empty());
}

TEST_F(PowerTest, StartTurnsTheSwitchOfAGuestThatEndedByItself) {
  program_.server.On(kLook, Machine({.state = "Shutdown"}));
  Becomes({{.power = "Off", .state = "Shutdown"}});
  EXPECT_EQ(Run({"start", "web"}).out, kLabel + " starts\n");
  EXPECT_EQ(Switched(), (std::vector{off_, on_}));
}

TEST_F(PowerTest, C12_AGuestThatIsPausedIsNotStartedAnewAndNotOff) {
  program_.server.On(kLook, Machine({.state = "Shutdown", .why_not_ready = "Paused"}));
  auto ended = Run({"start", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, kLabel + " is on already, and paused: its condition Ready says why\n");
  EXPECT_TRUE(Switched().empty()) << "its memory would be lost";
  program_.server.On(kList, List({.state = "Shutdown", .why_not_ready = "Paused"}));
  program_.server.watches[kWatch].chunks = {R"({"type":"MODIFIED","object":)" + Machine({}) +
                                            "}\n"};
  EXPECT_EQ(Run({"start", "web", "--wait"}).out, kLabel + " runs\n") << "there is room again";
  EXPECT_TRUE(Switched().empty());
  program_.server.answers[kList].clear();
  Becomes({{.power = "Off", .state = "Shutdown", .why_not_ready = "Paused"}});
  EXPECT_EQ(Run({"stop", "web", "--wait", "--timeout=1s"}).code, 1) << "it has not ended yet";
}

TEST_F(PowerTest, RestartIsOffAndThenOn) {
  program_.server.On(kLook, Machine({}));
  Becomes({{.power = "Off", .state = "Shutdown"}, {}});
  EXPECT_EQ(Run({"restart", "web", "--wait"}).out, kLabel + " runs\n");
  EXPECT_EQ(Switched(), (std::vector{off_, on_}));
}

TEST_F(PowerTest, ARestartThatStopsHalfWaySaysHowToGoOn) {
  program_.server.On(kLook, Machine({}));
  Becomes({{.power = "Off", .observed = 1}});
  const auto ended = Run({"restart", "web", "--timeout=1s"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find(kLabel + " is switched off and not on again"), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("next: berth start web"), std::string::npos) << ended.err;
  EXPECT_EQ(Switched(), std::vector{off_});
}

TEST_F(PowerTest, RestartNeedsSomethingThatRuns) {
  program_.server.On(kLook, Machine({.power = "Off", .state = "Shutdown"}));
  auto ended = Run({"restart", "web"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("is switched off\nnext: berth start web"), std::string::npos)
      << ended.err;
  program_.server.answers[kLook].clear();
  program_.server.On(kLook, Machine({.state = "Pending", .pool_uid = ""}));
  ended = Run({"restart", "web"});
  EXPECT_NE(ended.err.find("is on no pool yet\nnext: berth why machine/web"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(Switched().empty());
}

TEST_F(PowerTest, OnlyMachinesHaveASwitch) {
  EXPECT_EQ(Run({"stop", "volume/data"}).code, 2);
  EXPECT_EQ(Run({"stop"}).code, 2);
  EXPECT_EQ(Run({"stop", "nothing"}).code, 3);
}

}  // namespace
}  // namespace berth::cli
