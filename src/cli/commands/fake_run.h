// SPDX-License-Identifier: Apache-2.0
// Runs command lines of the whole table against a fake server.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/table.h"
#include "cli/session/program.h"
#include "cli/testing/fake_program.h"

namespace berth::cli {

inline FakeProgram::Ended RunLine(FakeProgram& program,
                                  const std::vector<std::string>& line,
                                  std::string_view in = "") {
  const Command root{
      .name = "berth", .summary = "Berth places things", .children = ClientCommands()};
  const auto entry = [&root](const std::vector<std::string>& words, Environment& environment) {
    return static_cast<int>(RunProgram(root, words, environment));
  };
  return program.Run(entry, line, in);
}

// One program that runs line after line.
class CommandTest : public testing::Test {
 protected:
  FakeProgram::Ended Run(const std::vector<std::string>& line, std::string_view in = "") {
    return RunLine(program_, line, in);
  }
  FakeServer& server() { return program_.server; }

  FakeProgram program_;
};

}  // namespace berth::cli
