// SPDX-License-Identifier: Apache-2.0
// Defends, on a whole server and over HTTPS: the subresource usage tells what is promised and free,
// to whoever may know, and writes nothing.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "app/server_under_test.h"
#include "base/check.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::app {
namespace {

constexpr std::string_view kCompute = "/apis/compute.ironcore.dev/v1alpha1/";

class Usage : public testing::Test {
 protected:
  Usage() {
    Must("POST",
         std::string(kCompute) + "machineclasses",
         R"({"metadata":{"name":"small"},"capabilities":{"cpu":"1","memory":"1Gi"}})");
    Must("POST",
         std::string(kCompute) + "machinepools",
         R"({"metadata":{"name":"alpha"},"spec":{"providerID":"test://alpha"}})");
    Must("PATCH",
         std::string(kCompute) + "machinepools/alpha/status",
         R"({"status":{"state":"Ready","agent":{"mode":"API"},"capacity":{"cpu":"4","memory":)"
         R"("64Gi"},"availableMachineClasses":[{"name":"small"}],"facts":{"model":"x"},)"
         R"("conditions":[{"type":"Ready","status":"True","reason":"Test"}]}})");
    Must("POST",
         std::string(kCompute) + "namespaces/default/machines",
         R"({"metadata":{"name":"web"},"spec":{"machineClassRef":{"name":"small"}}})");
    Must("POST",
         "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
         R"({"metadata":{"name":"tenant"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
         R"("kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","apiGroup":)"
         R"("rbac.authorization.k8s.io","name":"tenant"}]})");
  }
  int Send(const std::string& method,
           const std::string& target,
           const std::string& body,
           const std::string& user = "",
           const std::string& accept = "application/json") {
    net::HttpClientRequest request;
    request.method = method;
    request.target = target;
    request.headers.Set("Accept", accept);
    request.headers.Set("Content-Type",
                        method == "PATCH" ? "application/merge-patch+json" : "application/json");
    if (!user.empty()) request.headers.Set("Impersonate-User", user);
    if (!body.empty()) request.body.emplace_back(body);
    const auto answer = server_.Run(server_.http().Send(std::move(request)));
    CHECK(answer.ok()) << answer.status();
    body_ = answer->body;
    return answer->status;
  }
  void Must(const std::string& method, const std::string& target, const std::string& body) {
    const int code = Send(method, target, body);
    CHECK(code == 200 || code == 201) << method << " " << target << ": " << body_;
  }
  meta::Value Read(const std::string& target) {
    Must("GET", std::string(kCompute) + target, "");
    auto value = meta::ParseJson(body_);
    CHECK(value.ok()) << value.status();
    return *std::move(value);
  }

  ServerUnderTest server_;
  std::string body_;
};

TEST_F(Usage, APoolTellsWhatIsPromisedAndFree) {
  meta::Value usage;
  for (int i = 0; i < 10'000; ++i) {
    usage = Read("machinepools/alpha/usage");
    if (usage.GetString({"allocated", "cpu"}) == "1") break;
  }
  EXPECT_EQ(usage.GetString({"kind"}), "Usage") << body_;
  EXPECT_EQ(usage.GetString({"capacity", "cpu"}), "4") << body_;
  EXPECT_EQ(usage.GetString({"allocated", "cpu"}), "1") << body_;
  EXPECT_EQ(usage.GetString({"free", "memory"}), "63Gi") << body_;
  EXPECT_EQ(usage.Find("objects")->as_int(), 1) << body_;
  EXPECT_EQ(usage.GetString({"hardware", "model"}), "x") << body_;
  EXPECT_EQ(usage.GetString({"contact"}), "") << "it has no session";
}

TEST_F(Usage, R4_1_AMachineIsOnThePoolThatItsOwnerNamesIfThatIsTheAssignment) {
  const std::string compute(kCompute);
  // Poollets that were written for IronCore report a state; those in sessions are told by us.
  const std::pair<std::string, std::string> pools[] = {
      {"old", R"({"status":{"state":"Ready"}})"},
      {"asked", R"({"status":{"agent":{"mode":"Session"}}})"}};
  for (const auto& [name, status] : pools) {
    Must("POST",
         compute + "machinepools",
         R"({"metadata":{"name":")" + name + R"("},"spec":{"providerID":"test://)" + name +
             R"("}})");
    Must("PATCH", compute + "machinepools/" + name + "/status", status);
    Must("POST",
         compute + "namespaces/default/machines",
         R"({"metadata":{"name":"names-)" + name +
             R"("},"spec":{"machineClassRef":{"name":"small"},"machinePoolRef":{"name":")" + name +
             R"("}}})");
  }
  const std::string machines = compute + "namespaces/default/machines";
  EXPECT_EQ(Read("namespaces/default/machines/names-old/usage").GetString({"pool"}), "old");
  EXPECT_EQ(Read("namespaces/default/machines/names-asked/usage").GetString({"pool"}), "");
  ASSERT_EQ(Send("GET", machines, "", "", "application/json;as=UsageList;g=berth.dev;v=v1alpha1"),
            200);
  const auto list = meta::ParseJson(body_);
  ASSERT_TRUE(list.ok()) << body_;
  std::map<std::string, std::string> shown;
  for (const meta::Value& usage : list->Find("items")->items()) {
    shown[std::string(usage.GetString({"metadata", "name"}))] = usage.GetString({"pool"});
  }
  EXPECT_EQ(shown["names-old"], "old") << body_;
  EXPECT_EQ(shown["names-asked"], "") << body_;
}

TEST_F(Usage, IsReadByWhoMayReadAndWrittenByNobody) {
  const std::string machine = std::string(kCompute) + "namespaces/default/machines/web/usage";
  const std::string pool = std::string(kCompute) + "machinepools/alpha/usage";
  EXPECT_EQ(Send("GET", machine, "", "tenant"), 200) << body_;
  EXPECT_EQ(Send("GET", pool, "", "tenant"), 403) << body_;
  EXPECT_EQ(Send("GET", machine, "", "stranger"), 403) << body_;
  EXPECT_EQ(Send("PUT", machine, "{}"), 405) << body_;
  EXPECT_EQ(Send("GET", std::string(kCompute) + "machinepools/none/usage", ""), 404) << body_;
  EXPECT_EQ(Send("GET", std::string(kCompute) + "machineclasses/small/usage", ""), 404) << body_;
}

TEST_F(Usage, DiscoveryKnowsTheSubresource) {
  const meta::Value resources = Read("");
  bool found = false;
  for (const meta::Value& resource : resources.Find("resources")->items()) {
    if (resource.GetString({"name"}) != "machinepools/usage") continue;
    found = true;
    EXPECT_EQ(resource.GetString({"kind"}), "Usage");
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace berth::app
