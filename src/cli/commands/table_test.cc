// SPDX-License-Identifier: Apache-2.0
// Defends: whoever asks a command for help sees what it does and a line to copy.
#include "cli/commands/table.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::cli {
namespace {

void Visit(const std::string& path, const Command& command) {
  if (command.visibility == Visibility::kHidden) return;
  EXPECT_FALSE(command.summary.empty()) << path;
  EXPECT_FALSE(command.examples.empty()) << path << " --help shows no example";
  EXPECT_NE(command.examples.find("berth "), std::string_view::npos) << path;
  for (const Command& child : command.children) Visit(path + " " + std::string(child.name), child);
}

TEST(ClientCommands, EachHasASummaryAndAnExample) {
  for (const Command& command : ClientCommands())
    Visit("berth " + std::string(command.name), command);
}

}  // namespace
}  // namespace berth::cli
