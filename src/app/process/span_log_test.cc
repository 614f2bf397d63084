// SPDX-License-Identifier: Apache-2.0
// Defends: a span is one line of JSON, whatever it is about.
#include "app/process/span_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "rt/sim/sim_loop.h"

namespace berth::app {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(SpanLog, WritesALineForEachSpanAndWhoseItWas) {
  const std::string path = ::testing::TempDir() + "/berth-span-log-" + std::to_string(getpid());
  std::filesystem::remove(path);
  rt::SimLoop loop(1);
  {
    const Result<std::unique_ptr<SpanLog>> log = SpanLog::Open(loop, path);
    ASSERT_TRUE(log.ok()) << log.status().message();
    (*log)->Add("libvirt.start", "m-1", WallTime::FromMicros(10), WallTime::FromMicros(25));
    (*log)->Add("libvirt.list", "", WallTime::FromMicros(1), WallTime::FromMicros(2));
    (*log)->Add("poollet.create", "a\"\n", WallTime::FromMicros(3), WallTime::FromMicros(3));
  }
  EXPECT_EQ(FileText(path),
            "{\"span\":\"libvirt.start\",\"of\":\"m-1\",\"begin\":10,\"end\":25}\n"
            "{\"span\":\"libvirt.list\",\"begin\":1,\"end\":2}\n"
            "{\"span\":\"poollet.create\",\"of\":\"a\\\"\\n\",\"begin\":3,\"end\":3}\n");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace berth::app
