// SPDX-License-Identifier: Apache-2.0
// Defends one run of the program: what flags and kubeconfig come to, that a server is asked only if
// a command needs it, and how a run ends.
#include "cli/session/session.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/session/program.h"
#include "cli/testing/fake_program.h"

namespace berth::cli {
namespace {

Status RunIdle(Session& session, const Arguments& /*arguments*/) {
  session.out() << "idle\n";
  return OkStatus();
}

// Twice, as a command does that looks something up and then acts.
Status RunAsk(Session& session, const Arguments& /*arguments*/) {
  for (int i = 0; i < 2; ++i) {
    TRY(Api * api, session.GetApi());
    TRY_STATUS(api->GetText("/version"));
    TRY_STATUS(session.GetDiscovery());
  }
  TRY(const std::string in, session.Namespace());
  session.out() << in << (session.namespace_was_given() ? " as told\n" : "\n");
  return OkStatus();
}

Status RunRefused(Session& /*session*/, const Arguments& /*arguments*/) {
  return Status(Reason::kInvalid,
                "two things are wrong",
                {{.kind = CauseKind::kRequired, .field = "spec.a", .message = "is missing"},
                 {.kind = CauseKind::kInvalid, .field = "spec.b", .message = "is bad"}});
}

Status RunAdvised(Session& /*session*/, const Arguments& /*arguments*/) {
  return Advise(Conflict("someone was faster"), "read it again");
}

Status RunQuiet(Session& session, const Arguments& /*arguments*/) {
  session.out() << "no\n";
  return FailQuietly();
}

constexpr std::array kChildren = {
    Command{.name = "idle", .summary = "Does nothing", .run = &RunIdle},
    Command{.name = "ask", .summary = "Asks the server", .run = &RunAsk},
    Command{.name = "refused", .summary = "Fails with causes", .run = &RunRefused},
    Command{.name = "advised", .summary = "Fails with advice", .run = &RunAdvised},
    Command{.name = "quiet", .summary = "Fails without a word", .run = &RunQuiet},
};
constexpr Command kRoot = {.name = "berth", .summary = "Tests", .children = kChildren};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    program_.server.On("GET /version", "{}");
    program_.environment.connect =
        [this](const Connection& connection) -> Result<std::unique_ptr<Transport>> {
      connections_.push_back(connection);
      return program_.server.Connect();
    };
  }

  FakeProgram::Ended Run(const std::vector<std::string>& line) {
    const auto entry = [](const std::vector<std::string>& words, Environment& environment) {
      return static_cast<int>(RunProgram(kRoot, words, environment));
    };
    return program_.Run(entry, line);
  }
  // What `berth ask` with these flags connects with.
  Connection Asked(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "ask");
    const auto ended = Run(flags);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return connections_.empty() ? Connection{} : connections_.back();
  }

  FakeProgram program_;
  std::vector<Connection> connections_;
};

TEST_F(SessionTest, ACommandThatNeedsNoServerReadsNoKubeconfigAndConnectsToNothing) {
  program_.environment.variables["KUBECONFIG"] = program_.Write("broken", "clusters: [");
  const auto ended = Run({"idle"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "idle\n");
  EXPECT_TRUE(connections_.empty());
  EXPECT_EQ(Run({"ask"}).code, static_cast<int>(ExitCode::kUsage));
}

TEST_F(SessionTest, ConnectsOnce) {
  EXPECT_EQ(Run({"ask"}).out, "default\n");
  EXPECT_EQ(connections_.size(), 1U);
}

TEST_F(SessionTest, TheKubeconfigSaysWhereAndWho) {
  const Connection connection = Asked({});
  EXPECT_EQ(connection.server, "https://127.0.0.1:8443");
  EXPECT_EQ(connection.token, "s3cret");
  EXPECT_EQ(connection.context, "test");
  EXPECT_EQ(connection.impersonate_user, "");
  EXPECT_EQ(connection.request_timeout, std::nullopt);
}

TEST_F(SessionTest, FlagsStandAnywhereAndWin) {
  EXPECT_EQ(Asked({"--context=other"}).namespace_, "team-b");
  EXPECT_EQ(Run({"ask", "--context", "other", "-n", "prod"}).out, "prod as told\n");
  EXPECT_EQ(Run({"-n", "prod", "ask"}).out, "prod as told\n");
  const Connection connection =
      Asked({"--server", "10.0.0.1:1", "--token=t", "--request-timeout=5s"});
  EXPECT_EQ(connection.server, "https://10.0.0.1:1");
  EXPECT_EQ(connection.token, "t");
  EXPECT_EQ(connection.request_timeout, Duration::Seconds(5));
}

TEST_F(SessionTest, ImpersonatesAUserAndEveryGroupThatIsNamed) {
  const Connection connection = Asked({"--as", "ann", "--as-group=dev", "--as-group", "a,b"});
  EXPECT_EQ(connection.impersonate_user, "ann");
  EXPECT_EQ(connection.impersonate_groups, (std::vector<std::string>{"dev", "a,b"}));
  const auto ended = Run({"ask", "--as-group=dev"});
  EXPECT_EQ(ended.code, static_cast<int>(ExitCode::kUsage));
  EXPECT_TRUE(ended.err.contains("next: --as=USER --as-group=GROUP")) << ended.err;
}

TEST_F(SessionTest, RequestsAreShownOnStandardErrorWhenAskedFor) {
  EXPECT_EQ(Run({"ask"}).err, "");
  EXPECT_TRUE(Run({"ask", "-v", "6"}).err.contains("/version")) << Run({"ask", "-v", "6"}).err;
}

struct EndCase {
  std::vector<std::string> line;
  ExitCode code;
  std::string out;
  std::string err;
};

TEST_F(SessionTest, EndsWithACodeAndTheNextStep) {
  const EndCase cases[] = {
      {{"refused"},
       ExitCode::kFailed,
       "",
       "error: two things are wrong\n  spec.a: is missing\n  spec.b: is bad\n"},
      {{"advised"}, ExitCode::kConflict, "", "error: someone was faster\nnext: read it again\n"},
      {{"quiet"}, ExitCode::kFailed, "no\n", ""},
  };
  for (const EndCase& row : cases) {
    const auto ended = Run(row.line);
    EXPECT_EQ(ended.code, static_cast<int>(row.code)) << row.line[0];
    EXPECT_EQ(ended.out, row.out) << row.line[0];
    EXPECT_TRUE(ended.err.starts_with(row.err) && ended.err.empty() == row.err.empty())
        << ended.err;
  }
}

TEST_F(SessionTest, CausesOfTheMessageStandBelowItOnce) {
  const Status status(Reason::kInvalid,
                      "Machine \"x\" is invalid: [spec.a: is missing, spec.b: is bad]",
                      {{.kind = CauseKind::kRequired, .field = "spec.a", .message = "is missing"},
                       {.kind = CauseKind::kInvalid, .field = "spec.b", .message = "is bad"}});
  EXPECT_EQ(FullMessage(status),
            "Machine \"x\" is invalid:\n  spec.a: is missing\n  spec.b: is bad");
}

TEST_F(SessionTest, KubeconfigsThatAreNotThereAreNamed) {
  program_.environment.variables["KUBECONFIG"] = "/nowhere/a:/nowhere/b";
  const auto ended = Run({"ask"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.err,
            "error: no server is known: $KUBECONFIG names /nowhere/a:/nowhere/b, which does not "
            "exist\nnext: start a server with berth up, or set KUBECONFIG to its kubeconfig\n");
}

TEST_F(SessionTest, AMistypedCommandSuggestsTheNearest) {
  const auto ended = Run({"idel"});
  EXPECT_EQ(ended.code, static_cast<int>(ExitCode::kUsage));
  EXPECT_TRUE(ended.err.contains("idle")) << ended.err;
}

TEST_F(SessionTest, HelpIsTheSameInBothOrders) {
  const auto one = Run({"help", "ask"});
  const auto two = Run({"ask", "--help"});
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(one.out, two.out);
  EXPECT_TRUE(one.out.contains("Asks the server")) << one.out;
  EXPECT_TRUE(Run({}).out.contains("idle")) << Run({}).out;
}

}  // namespace
}  // namespace berth::cli
