// SPDX-License-Identifier: Apache-2.0
// Defends: a bundle has what helps and no secret, and is made also when the server does not answer.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/commands/fake_run.h"
#include "cli/commands/server_load.h"
#include "cli/testing/unpacked.h"

namespace berth::cli {
namespace {

class SupportBundleTest : public ::testing::Test {
 protected:
  FakeProgram program_;
  std::string path_ = program_.folder() + "/bundle.tar.gz";
};

TEST_F(SupportBundleTest, HasObjectsWithoutSecrets) {
  FakeServer& server = program_.server;
  server.On("GET /metrics", "process_open_fds 12\n");
  server.On("GET /api/v1", R"({"kind":"APIResourceList","groupVersion":"v1","resources":[
      {"name":"secrets","singularName":"secret","kind":"Secret","namespaced":true,
       "verbs":["get","list"]}]})");
  server.On("GET /apis", R"({"kind":"APIGroupList","groups":[]})");
  server.On("GET /api/v1/secrets?limit=500",
            R"({"kind":"SecretList","metadata":{},"items":[
                {"metadata":{"name":"db"},"data":{"password":"aHVudGVyMg=="}}]})");
  const auto log = program_.Write("log", "started\nBearer very-secret\n");
  const auto ended = RunLine(program_, {"support-bundle", "-f", path_, "--log", log});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.contains("look before you send it on")) << ended.out;
  const std::string all = UnpackedGz(path_);
  EXPECT_TRUE(all.contains("berth-support-20231114-221320/objects/secrets.jsonl")) << ended.err;
  EXPECT_TRUE(all.contains(R"("data":{"password":"<redacted: 12 bytes>"})"));
  EXPECT_TRUE(all.contains("process_open_fds 12"));
  EXPECT_TRUE(all.contains("started\nBearer <redacted>"));
  EXPECT_FALSE(all.contains("aHVudGVyMg"));
  const auto again = RunLine(program_, {"support-bundle", "-f", path_});
  EXPECT_NE(again.code, 0);
  EXPECT_TRUE(again.err.contains("is there already")) << again.err;
}

TEST_F(SupportBundleTest, IsMadeWithoutAServer) {
  program_.server.is_down = true;
  const auto ended = RunLine(program_, {"support-bundle", "-f", path_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.err.contains("note: ")) << ended.err;
  EXPECT_TRUE(UnpackedGz(path_).contains("/host/system.txt"));
}

TEST(ServerLoad, IsReadFromMetrics) {
  const std::string_view text =
      "# HELP x y\nberth_loop_lag_max_seconds{loop=\"main\"} 0.31\n"
      "berth_loop_lag_max_seconds{loop=\"hosts\"} 0.002\nprocess_open_fds 90\nprocess_max_fds 100\n"
      "process_resident_memory_bytes 104857600\nprocess_memory_limit_bytes 1073741824\n";
  EXPECT_EQ(MetricIn(text, "process_open_fds"), 90);
  EXPECT_EQ(MetricIn(text, "process_open"), std::nullopt);
  const auto findings = JudgeLoad(text);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].verdict, Verdict::kWarn);
  EXPECT_EQ(findings[0].text, "late by at most main 310 ms, hosts 2 ms in the last minute");
  EXPECT_EQ(findings[1].verdict, Verdict::kWarn);
  EXPECT_EQ(findings[1].text, "90 open, 100 allowed");
  EXPECT_EQ(findings[2].verdict, Verdict::kOk);
  EXPECT_EQ(findings[2].text, "100 MiB used, 1024 MiB allowed");
  EXPECT_TRUE(JudgeLoad("nothing").empty());
}

TEST(ServerLoad, ConnectionsThatAreOnlyPassedOnAreSaid) {
  EXPECT_TRUE(JudgeLoad("berth_passed_on_connections 0\n").empty());
  const auto findings = JudgeLoad("berth_passed_on_connections 12\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::kOk);
  EXPECT_EQ(findings[0].text, "12 connections of hosts go through it to the server that leads");
}

struct ControllerCase {
  std::string_view metrics;
  Verdict verdict;
  std::string_view text;
};

TEST(ServerLoad, EventsThatWereDroppedAreNamedWithTheirComponent) {
  EXPECT_TRUE(JudgeLoad("berth_events_dropped_total{component=\"berth-scheduler\"} 0\n"
                        "berth_events_skipped_total{component=\"berth-scheduler\"} 9\n")
                  .empty());
  const auto findings = JudgeLoad(
      "berth_events_dropped_total{component=\"berth-gateway\"} 0\n"
      "berth_events_dropped_total{component=\"berth-scheduler\"} 12\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::kWarn);
  EXPECT_EQ(findings[0].title, "events");
  EXPECT_EQ(findings[0].text,
            "dropped since the server's start, because too many waited: 12 of berth-scheduler");
}

TEST(ServerLoad, ControllersThatDoNotKeepUpAreNamed) {
  const ControllerCase cases[] = {
      {"berth_controller_failing_seconds{controller=\"quota\"} 59\n"
       "berth_controller_queue_oldest_seconds{controller=\"quota\"} 59\n"
       "berth_controller_follow_failing_seconds{controller=\"gateway\"} 29\n"
       "berth_controller_follow_failing_seconds{controller=\"quota\"} 0\n",
       Verdict::kOk,
       "all 2 keep up"},
      {"berth_controller_failing_keys{controller=\"machine sets\"} 3\n"
       "berth_controller_failing_seconds{controller=\"machine sets\"} 60\n",
       Verdict::kWarn,
       "machine sets: 3 keep failing, the first for 60s"},
      {"berth_controller_queue_keys{controller=\"ipam\"} 7\n"
       "berth_controller_queue_oldest_seconds{controller=\"ipam\"} 60\n",
       Verdict::kWarn,
       "ipam: 7 wait, the first for 60s"},
      {"berth_controller_follow_failing_seconds{controller=\"gateway\"} 30.5\n",
       Verdict::kWarn,
       "gateway: has not been able to follow objects for 30s"},
      {"berth_controller_follow_failing_seconds{controller=\"gateway\"} 300\n",
       Verdict::kFail,
       "gateway: has not been able to follow objects for 5m"},
  };
  for (const ControllerCase& one : cases) {
    const auto findings = JudgeLoad(one.metrics);
    ASSERT_EQ(findings.size(), 1U) << one.metrics;
    EXPECT_EQ(findings[0].verdict, one.verdict) << one.metrics;
    EXPECT_EQ(findings[0].title, "controllers");
    EXPECT_EQ(findings[0].text, one.text);
    EXPECT_EQ(findings[0].next_step.empty(), one.verdict == Verdict::kOk);
  }
}

}  // namespace
}  // namespace berth::cli
