// SPDX-License-Identifier: Apache-2.0
// Every input that is kept is read again, whole and cut short.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

// Cuts per input: enough to end inside of everything, few enough for all of the corpus.
constexpr size_t kCutsMax = 16;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, NothingInTheCorpusBreaksIt) {
  const Target& target = GetParam();
  const auto folder = std::filesystem::path(BERTH_FUZZ_CORPUS) / target.name;
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string bytes = ReadAll(entry.path());
    SCOPED_TRACE(entry.path().filename().string());
    target.run(bytes);
    const size_t step = bytes.size() / kCutsMax + 1;
    for (size_t size = 0; size < bytes.size(); size += step) {
      target.run(std::string_view(bytes).substr(0, size));
    }
    ++inputs;
  }
  EXPECT_GE(inputs, 5) << folder;
}

INSTANTIATE_TEST_SUITE_P(All,
                         Replay,
                         testing::ValuesIn(AllTargets().begin(), AllTargets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace berth::fuzz
