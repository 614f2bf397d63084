// SPDX-License-Identifier: Apache-2.0
// Defends: the smallest of all limits is found, and one that is too small is told before it hurts.
#include "app/process/memory_limit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"

namespace berth::app {
namespace {

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    root_ = (std::filesystem::temp_directory_path() / "berth-limit-XXXXXX").string();
    CHECK(mkdtemp(root_.data()) != nullptr);
    Write("/proc/meminfo", "MemTotal:        2048000 kB\nMemFree: 1 kB\n");
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(MemoryLimitTest, IsTheHostsWithoutOthers) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  const MemoryLimit limit = ReadMemoryLimit(root_);
  EXPECT_EQ(limit.bytes, 2048000ULL * 1024);
  EXPECT_EQ(limit.source, "the host");
}

TEST_F(MemoryLimitTest, OfAGroupIsTheSmallestOnTheWayUp) {
  Write("/proc/self/cgroup", "0::/system.slice/berth.service\n");
  Write("/sys/fs/cgroup/system.slice/berth.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/memory.max", "268435456\n");
  const MemoryLimit limit = ReadMemoryLimit(root_);
  EXPECT_EQ(limit.bytes, 256ULL << 20);
  EXPECT_EQ(limit.source, "/sys/fs/cgroup/system.slice/memory.max");
  EXPECT_TRUE(CheckMemory(limit).ok());
}

TEST_F(MemoryLimitTest, OfTheFirstVersionOfGroupsCounts) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\nnonsense\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n");
  const MemoryLimit limit = ReadMemoryLimit(root_);
  EXPECT_EQ(limit.bytes, 32ULL << 20);
  EXPECT_EQ(CheckMemory(limit).message(),
            "memory: /sys/fs/cgroup/memory/memory.limit_in_bytes allows 32 MiB, a server needs 96 "
            "MiB");
}

TEST_F(MemoryLimitTest, IsUnknownWithoutFiles) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(ReadMemoryLimit(root_).bytes, 0U);
  EXPECT_TRUE(CheckMemory(ReadMemoryLimit(root_)).ok());
}

}  // namespace
}  // namespace berth::app
