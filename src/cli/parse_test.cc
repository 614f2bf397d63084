// SPDX-License-Identifier: Apache-2.0
// Defends: command lines mean what kubectl's users expect, and mistakes are named with a way out.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/transport.h"

namespace berth::cli {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kFormats = {"json"sv, "yaml"sv, "wide"sv};
constexpr std::array kGlobals = {
    Flag{.name = "namespace",
         .letter = 'n',
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Namespace to work in.",
         .variable = "BERTH_NAMESPACE"},
    Flag{.name = "request-timeout", .kind = FlagKind::kDuration, .value_name = "TIME"},
};
constexpr std::array kGetFlags = {
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "How to print.",
         .values = kFormats},
    Flag{.name = "all-namespaces", .letter = 'A'},
    Flag{.name = "watch", .letter = 'w'},
    Flag{.name = "limit", .kind = FlagKind::kNumber, .value_name = "N", .fallback = "500"},
    Flag{.name = "filename", .letter = 'f', .kind = FlagKind::kCommaList, .value_name = "FILE"},
    Flag{.name = "from-literal", .kind = FlagKind::kList, .value_name = "K=V"},
    Flag{.name = "cascade",
         .kind = FlagKind::kText,
         .value_name = "MODE",
         .fallback = "background",
         .bare = "background"},
};

Status Nothing(Session&, const Arguments&) { return OkStatus(); }

constexpr std::array kAuthChildren = {
    Command{.name = "can-i", .summary = "Ask for a right", .run = &Nothing},
};
constexpr std::array kCommands = {
    Command{.name = "get",
            .group = "Objects",
            .usage = "KIND [NAME...]",
            .summary = "List objects",
            .examples = "berth get machines",
            .flags = kGetFlags,
            .run = &Nothing},
    Command{.name = "auth", .group = "Access", .summary = "Rights", .children = kAuthChildren},
    Command{.name = "__complete", .run = &Nothing, .visibility = Visibility::kHidden},
};
constexpr Command kRoot = {
    .name = "berth", .summary = "Berth places things", .children = kCommands};

Result<ParsedLine> Parse(std::vector<std::string> line, const Variables& variables = {}) {
  return ParseArguments(kRoot, kGlobals, line, variables);
}

TEST(Parse, ReadsAValueInEveryUsualSpelling) {
  const std::vector<std::vector<std::string>> lines = {
      {"get", "machines", "-o", "yaml"},
      {"get", "machines", "-oyaml"},
      {"get", "machines", "-o=yaml"},
      {"get", "machines", "--output", "yaml"},
      {"get", "machines", "--output=yaml"},
      {"get", "-o", "yaml", "machines"},
      {"get", "-Aoyaml", "machines"},
      {"get", "-o", "json", "machines", "-o", "yaml"},
  };
  for (const auto& line : lines) {
    const auto parsed = Parse(line);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->arguments.Text("output"), "yaml");
    EXPECT_EQ(parsed->arguments.words(), std::vector<std::string>{"machines"});
    EXPECT_EQ(parsed->command().name, "get");
  }
}

TEST(Parse, ReadsSwitchesSinglyTogetherAndWithAValue) {
  const auto parsed = Parse({"get", "-Aw", "--watch=false"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->arguments.Switch("all-namespaces"));
  EXPECT_FALSE(parsed->arguments.Switch("watch"));
  EXPECT_TRUE(parsed->arguments.Given("watch"));
}

TEST(Parse, TakesGlobalFlagsBeforeTheCommand) {
  const auto parsed = Parse({"-n", "prod", "get", "machines"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->arguments.Text("namespace"), "prod");
}

TEST(Parse, AFlagThatMayStandAloneTakesItsValueOnlyAfterAnEqualsSign) {
  const auto alone = Parse({"get", "--cascade", "orphan"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->arguments.Text("cascade"), "background");
  EXPECT_EQ(alone->arguments.words(), std::vector<std::string>{"orphan"});
  const auto valued = Parse({"get", "--cascade=orphan"});
  ASSERT_TRUE(valued.ok()) << valued.status();
  EXPECT_EQ(valued->arguments.Text("cascade"), "orphan");
}

TEST(Parse, SplitsCommaListsAndKeepsLists) {
  const auto parsed = Parse({"get", "-f", "a,b", "-f", "c", "--from-literal", "k=1,2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->arguments.List("filename"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parsed->arguments.List("from-literal"), std::vector<std::string>{"k=1,2"});
}

TEST(Parse, EverythingAfterTwoDashesIsAWord) {
  const auto parsed = Parse({"get", "--", "-o", "--watch"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->arguments.words(), (std::vector<std::string>{"-o", "--watch"}));
}

TEST(Parse, ALoneDashIsAWordAndAValue) {
  const auto parsed = Parse({"get", "-f", "-", "-"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->arguments.List("filename"), std::vector<std::string>{"-"});
  EXPECT_EQ(parsed->arguments.words(), std::vector<std::string>{"-"});
}

TEST(Parse, TheFlagWinsOverTheVariableAndTheVariableOverTheFallback) {
  const Variables variables = {{"BERTH_NAMESPACE", "from-variable"}};
  const auto without = Parse({"get"}, variables);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->arguments.Text("namespace"), "from-variable");
  EXPECT_FALSE(without->arguments.Given("namespace"));
  const auto with = Parse({"get", "-n", "typed"}, variables);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->arguments.Text("namespace"), "typed");
  EXPECT_EQ(with->arguments.Number("limit"), 500);
}

TEST(Parse, ABareNumberIsADurationInSeconds) {
  const auto parsed = Parse({"get", "--request-timeout", "7"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->arguments.Span("request-timeout"), Duration::Seconds(7));
}

TEST(Parse, AsksForHelpAnywhere) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"get", "--help"}, {"get", "machines", "-h"}, {"-h", "get"}}) {
    const auto parsed = Parse(line);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->asked, Asked::kHelp);
    EXPECT_EQ(parsed->command().name, "get");
  }
}

struct Mistake {
  std::vector<std::string> line;
  std::string message;
  std::string next_step;
};

TEST(Parse, NamesEveryMistakeAndTheWayOut) {
  const std::vector<Mistake> mistakes = {
      {{"gte"}, R"(unknown command "gte" for "berth"; did you mean "get"?)", "see berth --help"},
      {{"auth", "cani"},
       R"(unknown command "cani" for "berth auth"; did you mean "can-i"?)",
       "see berth auth --help"},
      {{"cluster-info"}, R"(berth has no command "cluster-info")", "berth doctor, berth version"},
      {{"auth", "list"}, R"(unknown command "list" for "berth auth")", "see berth auth --help"},
      {{"zzzzzzzz"}, R"(unknown command "zzzzzzzz" for "berth")", "see berth --help"},
      {{"get", "--outptu=yaml"},
       "unknown flag --outptu; did you mean --output?",
       "see berth get --help"},
      {{"get", "-x"}, "unknown flag -x", "see berth get --help"},
      {{"get", "-o"}, "flag -o needs a value", "see berth get --help"},
      {{"get", "--limit", "many"},
       R"(--limit: "many" is not a whole number)",
       "see berth get --help"},
      {{"get", "-o", "xml"},
       R"(--output: "xml" is not one of json, yaml, wide)",
       "see berth get --help"},
      {{"get", "--watch=maybe"},
       R"(--watch: "maybe" is not true or false)",
       "see berth get --help"},
      {{"get", "--request-timeout=soon"},
       R"(--request-timeout: "soon" is not a duration such as 30s or 5m)",
       "see berth get --help"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto parsed = Parse(mistake.line);
    ASSERT_FALSE(parsed.ok()) << mistake.message;
    const Failure failure = FailureOf(parsed.status());
    EXPECT_EQ(failure.message, mistake.message);
    EXPECT_EQ(failure.next_step, mistake.next_step);
    EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kUsage);
  }
}

TEST(Help, ListsCommandsByGroupAndHidesHiddenOnes) {
  const std::string text = HelpText({&kRoot}, kGlobals);
  EXPECT_TRUE(text.contains("\nObjects:\n  get          List objects\n")) << text;
  EXPECT_TRUE(text.contains("\nAccess:\n  auth         Rights\n")) << text;
  EXPECT_FALSE(text.contains("__complete   ")) << text;
  EXPECT_TRUE(text.contains("-n, --namespace NAME")) << text;
}

TEST(Help, ShowsUsageExamplesAndFlagsOfACommand) {
  const std::string text = HelpText({&kRoot, kCommands.data()}, kGlobals);
  EXPECT_TRUE(text.contains("Usage:\n  berth get KIND [NAME...] [flags]\n")) << text;
  EXPECT_TRUE(text.contains("Examples:\n  berth get machines\n")) << text;
  EXPECT_TRUE(text.contains("  -o, --output FORMAT      How to print. (json, yaml, wide)\n"))
      << text;
  EXPECT_TRUE(text.contains("      --cascade[=MODE]")) << text;
}

TEST(Failure, TheAdviceClosestToTheCauseWins) {
  const Status status = Advise(Advise(NotFound("no such thing"), "first"), "second").Wrap("get");
  EXPECT_EQ(FailureOf(status).message, "get: no such thing");
  EXPECT_EQ(FailureOf(status).next_step, "first");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotFound);
}

TEST(Failure, OnlyAServerSendsPeopleToTheirRights) {
  EXPECT_EQ(FailureOf(Forbidden("machines is forbidden: User \"a\" cannot list")).next_step,
            "see what you may do: berth auth can-i --list");
  EXPECT_EQ(FailureOf(Forbidden("token is open to group or others (mode 0644)")).next_step, "");
}

TEST(Failure, EveryReasonHasItsExitCode) {
  EXPECT_EQ(ExitCodeOf(OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(Internal("x")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(Forbidden("x")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(Conflict("x")), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeOf(AlreadyExists("x")), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeOf(Unavailable("x")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(FailQuietly()), ExitCode::kFailed);
  EXPECT_TRUE(IsQuiet(FailQuietly()));
}

TEST(Transport, EscapesPathAndQuery) {
  Request request;
  request.path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a b";
  request.query = {{"labelSelector", "app in (a,b)"}, {"dryRun", "All"}};
  EXPECT_EQ(TargetOf(request),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b"
            "?labelSelector=app%20in%20%28a%2Cb%29&dryRun=All");
}

}  // namespace
}  // namespace berth::cli
