// SPDX-License-Identifier: Apache-2.0
// The bench runs, measures something, and leaves nothing behind.
#include "store/bench/store_bench.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "store/bench/fsync_probe.h"

namespace berth::store {
namespace {

class BenchTest : public testing::Test {
 protected:
  BenchTest() {
    std::string name = std::filesystem::temp_directory_path() / "berth-bench-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr);
    dir_ = name;
  }
  ~BenchTest() override { std::filesystem::remove_all(dir_); }
  std::filesystem::path dir_;
};

TEST_F(BenchTest, GivesEveryFigure) {
  StoreBenchOptions options;
  options.dir = dir_;
  options.producers = 4;
  options.duration = Duration::Millis(50);
  options.objects = 500;
  options.value_bytes = 300;
  const auto figures = RunStoreBench(options);
  ASSERT_TRUE(figures.ok()) << figures.status();
  std::set<std::string> metrics;
  for (const BenchFigure& figure : *figures) {
    metrics.insert(figure.metric);
    if (figure.metric != "store_rss_mb") EXPECT_GT(figure.value, 0) << figure.metric;
    EXPECT_FALSE(figure.unit.empty());
  }
  EXPECT_EQ(metrics,
            (std::set<std::string>{"fsync_per_s",
                                   "store_create_p50_ms_4",
                                   "store_create_p99_ms_4",
                                   "store_create_rate_4",
                                   "store_group_average_4",
                                   "store_load_rate",
                                   "store_open_ms",
                                   "store_rss_mb"}));
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(BenchTest, NamesAFolderThatIsNotThere) {
  const auto rate = MeasureFsyncPerSecond(dir_ / "absent", Duration::Millis(1));
  ASSERT_FALSE(rate.ok());
  EXPECT_NE(rate.status().message().find("absent"), std::string_view::npos);
  StoreBenchOptions options;
  options.dir = dir_ / "absent";
  EXPECT_FALSE(RunStoreBench(options).ok());
}

}  // namespace
}  // namespace berth::store
