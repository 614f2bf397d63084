// SPDX-License-Identifier: Apache-2.0
// Defends: what has to be recorded is, in whole lines, bounded in memory and on disk, and without
// any secret.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apiserver/audit/audit_log.h"
#include "base/strings.h"
#include "meta/json.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_blocking_pool.h"
#include "rt/sim/sim_loop.h"

namespace berth::apiserver {
namespace {

const WallTime kTime = ParseRfc3339("2026-08-22T10:00:00.123456Z").value();

std::string Slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

unsigned ModeOf(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-audit-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    path_ = folder_ + "/audit.log";
  }
  ~AuditTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<AuditLog> Open(AuditFile::Options options = {}) {
    options.path = path_;
    auto log = AuditLog::Open(options, loop_, pool_, metrics_);
    CHECK(log.ok()) << log.status();
    return std::move(log).value();
  }
  AuditRecord Record(int code = 201) {
    return {.time = kTime,
            .request_id = "r-17",
            .identity = identity_,
            .source = "10.0.0.1:4000",
            .user_agent = "kubectl/1.31",
            .request = request_,
            .name = "web-1",
            .code = code,
            .duration = Duration::Micros(1840)};
  }
  std::vector<meta::Value> Lines(const std::string& path) {
    std::vector<meta::Value> lines;
    const std::string text = Slurp(path);
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
    for (std::string_view line : Split(text, '\n')) {
      if (line.empty()) continue;
      auto value = meta::ParseJson(line);
      EXPECT_TRUE(value.ok()) << line;
      if (value.ok()) lines.push_back(*std::move(value));
    }
    return lines;
  }

  std::string folder_;
  std::string path_;
  rt::SimLoop loop_{1};
  rt::SimBlockingPool pool_;
  metrics::Registry metrics_;
  Identity identity_{.user = "ann", .groups = {"dev", "system:authenticated"}};
  RequestInfo request_{.is_resource = true,
                       .verb = "create",
                       .group = "compute.ironcore.dev",
                       .requested_group = "compute.OpenKCM.dev",
                       .version = "v1alpha1",
                       .namespace_ = "default",
                       .resource = "machines"};
};

TEST_F(AuditTest, WritesAndSecretReadsAreRecordedAndNothingElse) {
  struct Case {
    const char *verb, *group, *resource;
    bool audited;
  };
  for (const Case& c : {Case{"create", "compute.ironcore.dev", "machines", true},
                        Case{"update", "compute.ironcore.dev", "machines", true},
                        Case{"patch", "", "configmaps", true},
                        Case{"delete", "", "namespaces", true},
                        Case{"deletecollection", "", "secrets", true},
                        Case{"get", "", "secrets", true},
                        Case{"list", "", "secrets", true},
                        Case{"watch", "", "secrets", true},
                        Case{"get", "example.org", "secrets", false},
                        Case{"get", "compute.ironcore.dev", "machines", false},
                        Case{"list", "", "configmaps", false},
                        Case{"watch", "", "events", false}}) {
    RequestInfo request{
        .is_resource = true, .verb = c.verb, .group = c.group, .resource = c.resource};
    EXPECT_EQ(IsAudited(request), c.audited) << c.verb << " " << c.resource;
  }
  const meta::KindInfo review{.storage = meta::Storage::kReview};
  EXPECT_FALSE(IsAudited({.is_resource = true, .verb = "create", .kind = &review}));
  EXPECT_FALSE(IsAudited({.verb = "get", .path = "/metrics"}));
  EXPECT_TRUE(IsAudited({.verb = "post", .path = "/metrics"}));
}

TEST_F(AuditTest, ALineSaysWhoDidWhat) {
  std::string line;
  AppendAuditLine(Record(), line);
  EXPECT_EQ(line,
            R"({"time":"2026-08-22T10:00:00.123456Z","id":"r-17","user":"ann",)"
            R"("groups":["dev","system:authenticated"],"source":"10.0.0.1:4000",)"
            R"("userAgent":"kubectl/1.31","verb":"create","group":"compute.ironcore.dev",)"
            R"("version":"v1alpha1","resource":"machines","namespace":"default","name":"web-1",)"
            R"("requestedGroup":"compute.OpenKCM.dev","code":201,"durationMicros":1840})"
            "\n");
}

TEST_F(AuditTest, HostileTextStaysWithinItsLine) {
  identity_.user = "eve\n{\"user\":\"root\"}\x1b[2J\xff";
  const std::string agent(100'000, 'a');
  AuditRecord record = Record();
  record.user_agent = agent;
  std::string line;
  AppendAuditLine(record, line);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_LT(line.size(), 1000U);
  EXPECT_TRUE(meta::ParseJson(line.substr(0, line.size() - 1)).ok());
}

TEST_F(AuditTest, RecordsReachTheFileWithinTheInterval) {
  auto log = Open();
  log->Record(Record());
  EXPECT_TRUE(Lines(path_).empty());
  loop_.RunFor(AuditLog::kFlushInterval + Duration::Millis(10));
  EXPECT_EQ(Lines(path_).size(), 1U);
  EXPECT_EQ(ModeOf(path_), 0600U);
  log->Record(Record());
  log->Record(Record());
  loop_.RunFor(AuditLog::kFlushInterval + Duration::Millis(10));
  EXPECT_EQ(Lines(path_).size(), 3U);
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
}

TEST_F(AuditTest, StagesThatThePolicyLeavesOutAreNotWritten) {
  auto policy = AuditPolicy::Parse(
      "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted]\n"
      "rules: [{level: Metadata}]");
  ASSERT_TRUE(policy.ok()) << policy.status();
  AuditFile::Options options;
  options.path = path_;
  auto log = AuditLog::Open(options, loop_, pool_, metrics_, *std::move(policy));
  ASSERT_TRUE(log.ok()) << log.status();
  for (const std::string_view stage : {kAuditStarted, kAuditEnded, std::string_view()}) {
    AuditRecord record = Record();
    record.stage = stage;
    (*log)->Record(record);
  }
  EXPECT_TRUE(rt::RunTask(loop_, (*log)->Close()).ok());
  const auto lines = Lines(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].GetString({"stage"}), kAuditEnded);
  EXPECT_EQ(lines[1].GetString({"stage"}), "");
}

TEST_F(AuditTest, ManyRecordsDoNotWaitForTheInterval) {
  auto log = Open();
  for (int i = 0; i < 2000; ++i) log->Record(Record());
  loop_.RunFor(Duration::Millis(20));
  EXPECT_GT(Lines(path_).size(), 500U);
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
  EXPECT_EQ(Lines(path_).size(), 2000U);
}

TEST_F(AuditTest, ClosingWritesEverythingAndTakesNothingMore) {
  auto log = Open();
  for (int i = 0; i < 3; ++i) log->Record(Record());
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
  EXPECT_EQ(Lines(path_).size(), 3U);
  log->Record(Record());
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(Lines(path_).size(), 3U);
}

TEST_F(AuditTest, FilesAreSetAsideBySizeAndTheOldestGoes) {
  auto log = Open({.file_bytes_max = 2000, .files_max = 3});
  for (int i = 0; i < 40; ++i) {
    log->Record(Record(i));
    loop_.RunFor(AuditLog::kFlushInterval * 2);
  }
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  int64_t next = -1;
  for (const std::string& path : {path_ + ".2", path_ + ".1", path_}) {
    EXPECT_LE(std::filesystem::file_size(path), 2000U);
    EXPECT_EQ(ModeOf(path), 0600U);
    for (const auto& line : Lines(path)) {
      const int64_t code = line.Find("code")->as_int();
      EXPECT_TRUE(next < 0 || code == next) << "a record is missing or out of order";
      next = code + 1;
    }
  }
  EXPECT_EQ(next, 40);
}

TEST_F(AuditTest, ContinuesAfterACrashInTheMiddleOfALine) {
  std::ofstream(path_) << "{\"time\":\"cut o";
  chmod(path_.c_str(), 0644);
  auto log = Open();
  log->Record(Record());
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
  const std::string text = Slurp(path_);
  EXPECT_TRUE(text.starts_with("{\"time\":\"cut o\n{\"time\":\"2026-")) << text;
  EXPECT_EQ(ModeOf(path_), 0600U);
}

// A disk that does not take anything: folders are in the way of files to be set aside.
TEST_F(AuditTest, AFailingDiskKeepsRecordsThenCountsWhatIsLostAndRecovers) {
  std::filesystem::create_directories(path_ + ".1/in-the-way");
  std::filesystem::create_directories(path_ + ".2/in-the-way");
  auto log = Open({.file_bytes_max = 1000, .files_max = 3});
  uint64_t taken = 0;
  while (log->HasRoom()) {
    log->Record(Record());
    ++taken;
    if (taken % 1000 == 0) loop_.RunFor(Duration::Millis(200));
  }
  for (int i = 0; i < 5; ++i) log->Record(Record());
  EXPECT_NE(metrics_.Text().find("berth_audit_lost_total 5"), std::string::npos);
  std::filesystem::remove_all(path_ + ".1");
  std::filesystem::remove_all(path_ + ".2");
  loop_.RunFor(AuditLog::kRetryInterval * 2);
  EXPECT_TRUE(log->HasRoom());
  log->Record(Record());
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
  uint64_t found = 0;
  int64_t lost = 0;
  for (const std::string& path : {path_ + ".2", path_ + ".1", path_}) {
    for (const auto& line : Lines(path)) {
      if (const auto* gap = line.Find("lostRecords")) {
        lost += gap->as_int();
      } else {
        ++found;
      }
    }
  }
  EXPECT_EQ(lost, 5);
  EXPECT_EQ(found, taken + 1);
}

TEST_F(AuditTest, APlaceThatCannotBeWrittenIsAClearError) {
  AuditFile::Options options{.path = folder_ + "/no/such/audit.log"};
  auto log = AuditLog::Open(options, loop_, pool_, metrics_);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.status().message().find("no/such/audit.log"), std::string::npos);
}

// Measured, not asserted.
TEST_F(AuditTest, CostOfARecordIsPrinted) {
  auto log = Open();
  constexpr int kRounds = 8000;
  const AuditRecord record = Record();
  const std::clock_t begin = std::clock();
  for (int i = 0; i < kRounds; ++i) log->Record(record);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  printf("record: %.3f us\n", seconds * 1e6 / kRounds);
  EXPECT_TRUE(rt::RunTask(loop_, log->Close()).ok());
}

}  // namespace
}  // namespace berth::apiserver
