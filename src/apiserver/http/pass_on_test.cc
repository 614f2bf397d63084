// SPDX-License-Identifier: Apache-2.0
// What is passed on to the server that leads, and in whose name.
#include "apiserver/http/pass_on.h"

#include <gtest/gtest.h>

#include "apis/registry.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/http/router.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::apiserver {
namespace {

const meta::Scheme& Scheme() {
  static const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  return scheme;
}

CallPtr Request(std::string_view method, std::string_view path, std::string_view query = {}) {
  auto call = std::make_shared<Call>();
  call->http.method = method;
  call->http.target = std::string(path) + (query.empty() ? "" : "?" + std::string(query));
  call->identity = {.user = "jane", .groups = {"system:authenticated"}};
  auto parsed = Query::Parse(query);
  EXPECT_TRUE(parsed.ok());
  call->query = *std::move(parsed);
  auto info = ParseRequest(Scheme(), method, path, call->query);
  EXPECT_TRUE(info.ok()) << info.status();
  call->info = *std::move(info);
  return call;
}

constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";

class PassOnTest : public testing::Test {
 protected:
  rt::SimLoop loop_{1};
  Hosts hosts_{.leader = "https://leader:7443"};
  std::string asked_;
  PassOn pass_on_{
      {.loop = loop_,
       .hosts = hosts_,
       .connect = [this](const std::string& url) -> Result<std::unique_ptr<net::HttpClient>> {
         asked_ = url;
         return Unavailable("connection refused");
       }}};
};

TEST(InTheNameOf, TheOtherServerReadsExactlyThatUser) {
  const Authorizer authorizer(Scheme());
  const Identity server{.user = "system:berth:server:1", .groups = {"system:masters"}};
  const Identity user{.user = "jane doe, \"x\"",
                      .groups = {"a:b", "system:authenticated"},
                      .uid = "u-1",
                      .extra = {{"Example.com/Scopes", {"one", "two"}}, {"plain", {"v"}}}};
  const auto headers = InTheNameOf(user);
  ASSERT_TRUE(headers.ok()) << headers.status();
  const auto read = Impersonate(authorizer, server, headers->all());
  ASSERT_TRUE(read.ok() && read->has_value()) << read.status();
  EXPECT_EQ((*read)->user, user.user);
  EXPECT_EQ((*read)->groups, user.groups);
  EXPECT_EQ((*read)->uid, user.uid);
  EXPECT_EQ((*read)->extra, user.extra);
  // The headers alone make nobody anybody.
  const Identity stranger{.user = "mallory", .groups = {"system:authenticated"}};
  EXPECT_EQ(Impersonate(authorizer, stranger, headers->all()).status().reason(),
            Reason::kForbidden);
}

TEST(InTheNameOf, ANameThatAHeaderWouldChangeIsRefused) {
  for (const std::string bad :
       {"", " admin", "admin ", "x\r\nImpersonate-Group: system:masters", "a\nb", "a\tb", "\x7f"}) {
    EXPECT_EQ(InTheNameOf({.user = bad}).status().reason(), Reason::kForbidden) << bad;
    EXPECT_EQ(InTheNameOf({.user = "jane", .groups = {bad}}).status().reason(), Reason::kForbidden);
    EXPECT_EQ(InTheNameOf({.user = "jane", .extra = {{"key", {bad}}}}).status().reason(),
              Reason::kForbidden);
  }
}

TEST_F(PassOnTest, TakesWhatHostsAreNeededFor) {
  const std::string machine = std::string(kMachines) + "/m";
  const std::string reviews = "/apis/berth.dev/v1alpha1/namespaces/default/placementreviews";
  const CallPtr taken[] = {
      Request("GET", machine + "/exec", "command=id"),
      Request("GET", machine + "/console"),
      Request("GET", machine + "/log"),
      Request("GET", machine + "/portforward", "ports=1"),
      Request("GET", machine + "/usage"),
      Request("GET", "/apis/compute.ironcore.dev/v1alpha1/machinepools/p/usage"),
      Request("POST", reviews),
      Request("POST", kMachines, "dryRun=All"),
  };
  for (const CallPtr& call : taken) EXPECT_TRUE(pass_on_.Takes(*call)) << call->http.target;
  const CallPtr usages = Request("GET", kMachines);
  usages->http.headers.Set("Accept", "application/json;as=UsageList;g=berth.dev;v=v1alpha1");
  EXPECT_TRUE(pass_on_.Takes(*usages));
  const CallPtr adopts = Request("POST", kMachines);
  EXPECT_FALSE(pass_on_.Takes(*adopts));
  adopts->http.body = R"({"metadata":{"annotations":{"berth.dev/adopt":"x"}}})";
  EXPECT_TRUE(pass_on_.Takes(*adopts));
  const CallPtr left[] = {Request("GET", machine),
                          Request("GET", kMachines),
                          Request("GET", machine + "/status"),
                          Request("GET", "/api/v1/namespaces", "dryRun=All"),
                          Request("GET", "/readyz")};
  for (const CallPtr& call : left) EXPECT_FALSE(pass_on_.Takes(*call)) << call->http.target;
}

TEST_F(PassOnTest, NothingGoesRoundInCircles) {
  const CallPtr call = Request("GET", std::string(kMachines) + "/m/log");
  call->http.headers.Set(kPassedOnHeader, "x");
  EXPECT_FALSE(pass_on_.Takes(*call));
}

TEST_F(PassOnTest, WhereHostsAreOrNobodyLeadsNothingIsPassedOn) {
  const CallPtr call = Request("GET", std::string(kMachines) + "/m/log");
  hosts_.leader.clear();
  EXPECT_FALSE(pass_on_.Takes(*call));
  EXPECT_NE(hosts_.Missing().message().find("no server is known to lead"), std::string_view::npos);
}

TEST_F(PassOnTest, ALeaderThatCannotBeAskedIsNamedWithTheReason) {
  const auto answer = rt::RunTask(loop_, pass_on_.Answer(Request("GET", kMachines)));
  EXPECT_EQ(answer.status().reason(), Reason::kUnavailable);
  EXPECT_EQ(asked_, "https://leader:7443");
  EXPECT_NE(answer.status().message().find("https://leader:7443"), std::string_view::npos);
  EXPECT_NE(answer.status().message().find("connection refused"), std::string_view::npos);
}

}  // namespace
}  // namespace berth::apiserver
