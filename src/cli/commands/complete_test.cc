// SPDX-License-Identifier: Apache-2.0
// Defends: a shell is offered what fits at the cursor, and never an error.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

class CompleteTest : public testing::Test {
 protected:
  // The words that are offered, without their descriptions.
  std::string Offers(std::vector<std::string> line) {
    line.insert(line.begin(), "__complete");
    const auto ended = RunLine(program_, line);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    std::string out;
    bool word = true;
    for (const char c : ended.out) {
      if (c == '\t') word = false;
      if (word) out += c == '\n' ? ' ' : c;
      if (c == '\n' && !word) {
        word = true;
        out += ' ';
      }
    }
    return out;
  }
  FakeProgram program_;
};

TEST_F(CompleteTest, OffersCommands) {
  EXPECT_EQ(Offers({"ge"}), "get ");
  EXPECT_EQ(Offers({"auth", ""}), "can-i whoami ");
  EXPECT_EQ(Offers({"help", "ann"}), "annotate ");
  EXPECT_FALSE(Offers({""}).contains("__complete"));
}

TEST_F(CompleteTest, OffersFlagsOfTheCommandAndGlobalOnes) {
  EXPECT_EQ(Offers({"get", "--all"}), "--all-namespaces ");
  EXPECT_EQ(Offers({"get", "machines", "--kube"}), "--kubeconfig ");
}

TEST_F(CompleteTest, OffersValuesOfFlags) {
  EXPECT_EQ(Offers({"get", "machines", "-o", "js"}), "json jsonpath= ");
  EXPECT_EQ(Offers({"delete", "machine", "x", "--cascade=o"}), "--cascade=orphan ");
  EXPECT_EQ(Offers({"apply", "-f", ""}), ":files ");
  EXPECT_EQ(Offers({"get", "--context", ""}), "other test ");
}

TEST_F(CompleteTest, OffersKindsAndNames) {
  program_.server.On("GET /apis/compute.ironcore.dev/v1alpha1/namespaces/prod/machines?limit=500",
                     R"({"items":[{"metadata":{"name":"web"}},{"metadata":{"name":"db"}}]})");
  EXPECT_EQ(Offers({"get", "mach"}), "machines machineclasses ");
  EXPECT_EQ(Offers({"get", "-n", "prod", "machine", "w"}), "web ");
  EXPECT_EQ(Offers({"describe", "--namespace=prod", "machine/"}), "machine/web machine/db ");
  program_.server.On("GET /api/v1/namespaces?limit=500",
                     R"({"items":[{"metadata":{"name":"prod"}},{"metadata":{"name":"test"}}]})");
  EXPECT_EQ(Offers({"get", "machines", "-n", "p"}), "prod ");
}

TEST_F(CompleteTest, OffersNothingWhenTheServerIsDown) {
  program_.server.is_down = true;
  EXPECT_EQ(Offers({"get", ""}), "");
  EXPECT_EQ(Offers({"get", "machines", ""}), "");
}

TEST_F(CompleteTest, EveryShellHasAScript) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const auto ended = RunLine(program_, {"completion", shell});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(ended.out.contains("berth __complete")) << ended.out;
  }
  EXPECT_EQ(RunLine(program_, {"completion"}).code, 2);
  EXPECT_EQ(Offers({"completion", ""}), "bash zsh fish ");
}

TEST_F(CompleteTest, EveryCommandHasHelpAndNoFlagIsDeclaredTwice) {
  for (const Command& command : ClientCommands()) {
    if (command.visibility == Visibility::kHidden) continue;
    const auto ended = RunLine(program_, {"help", std::string(command.name)});
    EXPECT_EQ(ended.code, 0) << command.name;
    EXPECT_TRUE(ended.out.starts_with(std::string(command.summary))) << ended.out;
    EXPECT_FALSE(command.summary.empty()) << command.name;
    for (const Flag& flag : command.flags) {
      EXPECT_FALSE(flag.help.empty()) << command.name << " --" << flag.name;
      EXPECT_EQ(FindFlag(command, {}, flag.name), &flag) << command.name << " --" << flag.name;
      if (flag.letter != 0) {
        EXPECT_EQ(FindFlag(command, {}, std::string(1, flag.letter)), &flag)
            << command.name << " -" << flag.letter;
      }
    }
  }
  EXPECT_EQ(RunLine(program_, {}).code, 0);
}

}  // namespace
}  // namespace berth::cli
