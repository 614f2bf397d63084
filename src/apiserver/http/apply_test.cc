// SPDX-License-Identifier: Apache-2.0
// Defends what a client sees of server-side apply: statuses, causes, managers, preconditions; and
// that what a Go client sends in protobuf means the same.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/router.h"
#include "apiserver/registry/registry_world.h"
#include "meta/json.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "net/url.h"

namespace berth::apiserver {
namespace {

using meta::Value;

constexpr std::string_view kApplyType = "application/apply-patch+yaml";
constexpr std::string_view kMergeType = "application/merge-patch+json";
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
constexpr std::string_view kSets = "/apis/berth.dev/v1alpha1/namespaces/default/machinesets";

struct Answer {
  int status = 0;
  Value body;
};

class ApplyTest : public ::testing::Test {
 protected:
  ApplyTest() { world_.MakeNamespace("default"); }

  struct Sent {
    std::string method;
    std::string target;
    std::string body;
    std::string_view type = "application/json";
  };
  Answer Send(Sent sent) { return Send(std::move(sent), Admin()); }
  Answer Send(Sent sent, Identity identity) {
    auto call = std::make_shared<Call>();
    call->http.method = sent.method;
    call->http.target = sent.target;
    call->http.body = std::move(sent.body);
    call->http.headers.Set("Content-Type", std::string(sent.type));
    call->http.headers.Set("User-Agent", "gardener/v1.2 (linux)");
    call->identity = std::move(identity);
    const auto target = net::SplitTarget(call->http.target);
    auto query = net::Query::Parse(target.query);
    CHECK(query.ok()) << query.status();
    call->query = *std::move(query);
    auto info = ParseRequest(world_.scheme(), sent.method, target.path, call->query);
    CHECK(info.ok()) << info.status();
    call->info = *std::move(info);
    const auto answer = world_.Run(Dispatch(call));
    const net::HttpResponse response = answer.ok() ? *answer : StatusAnswer(answer.status());
    std::string text;
    for (const Bytes& part : response.body) text += part.view();
    auto body = meta::ParseJson(text);
    return {.status = response.status, .body = body.ok() ? *std::move(body) : Value()};
  }
  Handlers::Answer Dispatch(const CallPtr& call) {
    if (call->info.subresource == "scale") return handlers_.Scale(call);
    if (call->info.verb == "patch") return handlers_.Patch(call);
    if (call->info.verb == "create") return handlers_.Create(call);
    if (call->info.verb == "update") return handlers_.Update(call);
    if (call->info.verb == "list") return handlers_.List(call);
    if (call->info.verb == "delete") return handlers_.Delete(call);
    return handlers_.Get(call);
  }
  Answer Apply(std::string_view name, std::string_view members, std::string_view query) {
    return Send({.method = "PATCH",
                 .target = At(name) + "?" + std::string(query),
                 .body = Machine(members),
                 .type = kApplyType});
  }
  Answer Get(std::string_view name) { return Send({.method = "GET", .target = At(name)}); }

  static std::string At(std::string_view name) {
    return std::string(kMachines) + "/" + std::string(name);
  }
  static std::string Machine(std::string_view members) {
    return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine",)" +
           std::string(members) + "}";
  }
  static Identity Admin() {
    return {.user = "admin", .groups = {std::string(kMastersGroup)}, .uid = {}};
  }
  // MANAGER/OPERATION/SUBRESOURCE=FIELDS, separated by spaces.
  static std::string Managers(const Answer& answer) {
    const Value* entries = answer.body.Get({"metadata", "managedFields"});
    if (entries == nullptr) return "";
    std::string text;
    for (const Value& entry : entries->items()) {
      EXPECT_EQ(entry.GetString({"apiVersion"}).find("OpenKCM"), std::string::npos);
      if (!text.empty()) text += ' ';
      text += std::string(entry.GetString({"manager"})) + "/" +
              std::string(entry.GetString({"operation"})) + "/" +
              std::string(entry.GetString({"subresource"})) + "=" +
              meta::WriteJson(*entry.Find("fieldsV1"));
    }
    return text;
  }

  RegistryWorld world_{23};
  metrics::Registry metrics_;
  Authorizer authorizer_{world_.scheme()};
  const Hosts hosts_;
  PlacementReviews placement_{{.scheme = world_.scheme(),
                               .registry = world_.registry(),
                               .authorizer = authorizer_,
                               .hosts = hosts_}};
  Handlers handlers_{{.loop = world_.loop(),
                      .scheme = world_.scheme(),
                      .registry = world_.registry(),
                      .authorizer = authorizer_,
                      .metrics = metrics_,
                      .placement = placement_,
                      .hosts = hosts_}};
};

// A field of a message with its tag; short texts only.
std::string ProtoField(char tag, std::string_view text) {
  return std::string(1, tag) + static_cast<char>(text.size()) + std::string(text);
}
std::string Proto(std::string_view api_version, std::string_view kind, std::string_view raw) {
  const std::string type = ProtoField('\x0a', api_version) + ProtoField('\x12', kind);
  return std::string("k8s\0", 4) + ProtoField('\x0a', type) + ProtoField('\x12', raw);
}

constexpr std::string_view kSmall = R"("spec":{"machineClassRef":{"name":"small"}})";

TEST_F(ApplyTest, CreatesWhatIsMissingAndChangesNothingTheSecondTime) {
  EXPECT_EQ(Apply("web", kSmall, "fieldManager=me&dryRun=All").status, 201);
  EXPECT_EQ(Get("web").status, 404);
  const Answer made = Apply("web", kSmall, "fieldManager=me");
  EXPECT_EQ(made.status, 201) << meta::WriteJson(made.body);
  EXPECT_EQ(Managers(made), R"(me/Apply/={"f:spec":{"f:machineClassRef":{}}})");
  EXPECT_EQ(made.body.GetString({"spec", "power"}), "On");
  const Answer again = Apply("web", kSmall, "fieldManager=me");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body.GetString({"metadata", "resourceVersion"}),
            made.body.GetString({"metadata", "resourceVersion"}));
}

TEST_F(ApplyTest, ReadsYaml) {
  const Answer made = Send({.method = "PATCH",
                            .target = At("web") + "?fieldManager=me",
                            .body = "apiVersion: compute.OpenKCM.dev/v1alpha1\nkind: Machine\n"
                                    "metadata: {name: web}\n"
                                    "spec:\n  machineClassRef: {name: small}\n  power: \"Off\"\n",
                            .type = kApplyType});
  EXPECT_EQ(made.status, 201) << meta::WriteJson(made.body);
  EXPECT_EQ(made.body.GetString({"spec", "power"}), "Off");
}

TEST_F(ApplyTest, PreconditionsDoNotMakeObjects) {
  for (const std::string_view metadata :
       {R"("metadata":{"uid":"7"},)", R"("metadata":{"resourceVersion":"7"},)"}) {
    const Answer answer =
        Apply("web", std::string(metadata) + std::string(kSmall), "fieldManager=me");
    EXPECT_EQ(answer.status, 409) << meta::WriteJson(answer.body);
  }
  EXPECT_EQ(Get("web").status, 404);
  ASSERT_EQ(Apply("web", kSmall, "fieldManager=me").status, 201);
  EXPECT_EQ(Apply("web", R"("metadata":{"uid":"7"})", "fieldManager=me").status, 409);
}

TEST_F(ApplyTest, AConflictHasKubernetesCauses) {
  Apply(
      "web", R"("spec":{"machineClassRef":{"name":"small"},"power":"Off"})", "fieldManager=first");
  const Answer refused =
      Apply("web", R"("spec":{"power":"On"})", "fieldManager=second&force=false");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.body.GetString({"reason"}), "Conflict");
  EXPECT_EQ(refused.body.GetString({"message"}),
            R"(Apply failed with 1 conflict: conflict with "first": .spec.power)");
  EXPECT_EQ(
      meta::WriteJson(*refused.body.Get({"details", "causes"})),
      R"([{"reason":"FieldManagerConflict","message":"conflict with \"first\"","field":".spec.power"}])");
  const Answer forced = Apply("web", R"("spec":{"power":"On"})", "fieldManager=second&force=true");
  EXPECT_EQ(forced.status, 200);
  EXPECT_EQ(Managers(forced),
            R"(first/Apply/={"f:spec":{"f:machineClassRef":{}}} )"
            R"(second/Apply/={"f:spec":{"f:power":{}}})");
}

TEST_F(ApplyTest, MalformedAppliesAreRefused) {
  ASSERT_EQ(Apply("web", kSmall, "fieldManager=me").status, 201);
  const Answer unnamed = Apply("web", kSmall, "force=true");
  EXPECT_EQ(unnamed.status, 422);
  EXPECT_EQ(unnamed.body.GetString({"reason"}), "Invalid");
  EXPECT_EQ(Apply("web", kSmall, "fieldManager=" + std::string(129, 'x')).status, 422);
  EXPECT_EQ(Apply("web", kSmall, "fieldManager=a%01").status, 422);
  EXPECT_EQ(Apply("web", kSmall, "fieldManager=me&force=perhaps").status, 400);
  for (const std::string_view members : {R"("spec":{"nonsense":1})",
                                         R"("spec":{"power":7})",
                                         R"("spec":{"volumes":[{"device":"odb"}]})",
                                         R"("spec":{"volumes":[{"name":"a"},{"name":"a"}]})",
                                         R"("spec":{"volumes":[null]})",
                                         R"("metadata":{"managedFields":[]})",
                                         R"("metadata":{"name":"other"})",
                                         R"("metadata":{"namespace":"other"})"}) {
    EXPECT_EQ(Apply("web", members, "fieldManager=me").status, 400) << members;
  }
  for (const std::string body : {"[]",
                                 "{",
                                 "a: [",
                                 "\xff",
                                 "",
                                 "7",
                                 "{}",
                                 R"({"kind":"Machine"})",
                                 R"({"apiVersion":"v1","kind":"Machine"})"}) {
    const Answer answer = Send({.method = "PATCH",
                                .target = At("web") + "?fieldManager=me",
                                .body = body,
                                .type = kApplyType});
    EXPECT_EQ(answer.status, 400) << body;
  }
  EXPECT_EQ(Send({.method = "PATCH",
                  .target = At("web") + "?force=true",
                  .body = "{}",
                  .type = kMergeType})
                .status,
            422);
}

TEST_F(ApplyTest, WhoMayOnlyChangeDoesNotCreate) {
  const Identity pat{.user = "pat", .groups = {}, .uid = {}};
  const Sent sent{.method = "PATCH",
                  .target = At("web") + "?fieldManager=me",
                  .body = Machine(kSmall),
                  .type = kApplyType};
  EXPECT_EQ(Send(sent, pat).status, 403);
  EXPECT_EQ(Get("web").status, 404);
}

TEST_F(ApplyTest, AnUnnamedWriterIsCalledAsItsProgram) {
  const Answer made =
      Send({.method = "POST",
            .target = std::string(kMachines),
            .body = Machine(R"("metadata":{"name":"web"},)" + std::string(kSmall))});
  EXPECT_EQ(made.status, 201) << meta::WriteJson(made.body);
  EXPECT_EQ(Managers(made), R"(gardener/Update/={"f:spec":{"f:machineClassRef":{},"f:power":{}}})");
}

TEST_F(ApplyTest, ManagersAreResetByAnEmptyListOrAnEmptyEntry) {
  for (const std::string_view list : {"[]", "[{}]"}) {
    Apply("web", kSmall, "fieldManager=me&force=true");
    ASSERT_NE(Managers(Get("web")), "");
    const Answer reset =
        Send({.method = "PATCH",
              .target = At("web"),
              .body = R"({"metadata":{"managedFields":)" + std::string(list) + "}}",
              .type = kMergeType});
    EXPECT_EQ(reset.status, 200);
    EXPECT_EQ(Managers(reset), "") << list;
  }
  Apply("web", kSmall, "fieldManager=me&force=true");
  Value whole = Get("web").body;
  ASSERT_NE(Managers({.body = whole}), "");
  const Answer same = Send({.method = "PUT", .target = At("web"), .body = meta::WriteJson(whole)});
  EXPECT_EQ(Managers(same), Managers({.body = whole}));
  whole.Find("metadata")->Set("managedFields", Value::Array());
  const Answer reset = Send({.method = "PUT", .target = At("web"), .body = meta::WriteJson(whole)});
  EXPECT_EQ(reset.status, 200) << meta::WriteJson(reset.body);
  EXPECT_EQ(Managers(reset), "");
}

TEST_F(ApplyTest, StatusAndScaleHaveSetsOfTheirOwn) {
  Apply("web", kSmall, "fieldManager=me");
  const Answer status = Send({.method = "PATCH",
                              .target = At("web/status?fieldManager=me"),
                              .body = Machine(R"("status":{"state":"Running"})"),
                              .type = kApplyType});
  EXPECT_EQ(status.status, 200) << meta::WriteJson(status.body);
  EXPECT_TRUE(Managers(status).contains(R"(me/Apply/status={"f:status":{"f:state":{}}})"))
      << Managers(status);

  const std::string fleet =
      R"({"apiVersion":"berth.dev/v1alpha1","kind":"MachineSet","metadata":{"name":"fleet"},"spec":)"
      R"({"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":)"
      R"({"a":"b"}},"spec":{"machineClassRef":{"name":"small"}}}}})";
  const Answer made = Send({.method = "POST", .target = std::string(kSets), .body = fleet});
  ASSERT_EQ(made.status, 201) << meta::WriteJson(made.body);
  const std::string scale = std::string(kSets) + "/fleet/scale";
  EXPECT_EQ(Send({.method = "PATCH",
                  .target = scale,
                  .body = R"({"spec":{"replicas":3}})",
                  .type = kMergeType})
                .status,
            200);
  const std::string wanted =
      R"({"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":5}})";
  Sent applied{.method = "PATCH",
               .target = scale + "?fieldManager=scaler",
               .body = wanted,
               .type = kApplyType};
  EXPECT_EQ(Send(applied).status, 409);
  applied.target += "&force=true";
  const Answer forced = Send(applied);
  EXPECT_EQ(forced.status, 200) << meta::WriteJson(forced.body);
  const Answer found = Send({.method = "GET", .target = std::string(kSets) + "/fleet"});
  EXPECT_EQ(found.body.Get({"spec", "replicas"})->as_int(), 5);
  EXPECT_TRUE(Managers(found).starts_with(R"(scaler/Apply/scale={"f:spec":{"f:replicas":{}}})"))
      << Managers(found);
}

// As a Go client does, which sends what Kubernetes itself has in protobuf.
TEST_F(ApplyTest, AScaleIsReadInProtobufToo) {
  const std::string fleet =
      R"({"apiVersion":"berth.dev/v1alpha1","kind":"MachineSet","metadata":{"name":"fleet"},"spec":)"
      R"({"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":)"
      R"({"a":"b"}},"spec":{"machineClassRef":{"name":"small"}}}}})";
  const Answer made = Send({.method = "POST", .target = std::string(kSets), .body = fleet});
  ASSERT_EQ(made.status, 201) << meta::WriteJson(made.body);
  const auto put = [&](std::string_view kind, std::string_view spec) {
    const std::string scale =
        ProtoField('\x0a', ProtoField('\x0a', "fleet")) + ProtoField('\x12', spec);
    return Send({.method = "PUT",
                 .target = std::string(kSets) + "/fleet/scale",
                 .body = Proto("autoscaling/v1", kind, scale),
                 .type = meta::kKubernetesProtoMediaType});
  };
  const Answer scaled = put("Scale", "\x08\x05");
  ASSERT_EQ(scaled.status, 200) << meta::WriteJson(scaled.body);
  EXPECT_EQ(scaled.body.GetString({"kind"}), "Scale");
  EXPECT_EQ(scaled.body.Get({"spec", "replicas"})->as_int(), 5);
  const Answer other = put("Lease", "\x0a\x01x");
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.body.GetString({"message"}), R"(kind: expected Scale, got "Lease")");
  EXPECT_EQ(put("Scale", "\x0a\x01x").status, 400) << "replicas are a number";
}

TEST_F(ApplyTest, ADeletionIsReadInProtobufToo) {
  const Answer made = Apply("web", kSmall, "fieldManager=me");
  ASSERT_EQ(made.status, 201) << meta::WriteJson(made.body);
  const auto remove = [&](std::string_view kind, std::string_view uid, std::string_view revision) {
    std::string conditions = ProtoField('\x0a', uid);
    if (!revision.empty()) conditions += ProtoField('\x12', revision);
    return Send({.method = "DELETE",
                 .target = At("web"),
                 .body = Proto("v1", kind, ProtoField('\x12', conditions)),
                 .type = meta::kKubernetesProtoMediaType});
  };
  const std::string uid(made.body.GetString({"metadata", "uid"}));
  const std::string revision(made.body.GetString({"metadata", "resourceVersion"}));
  const Answer other = remove("DeleteOptions", "00000000-0000-4000-8000-00000000dead", "");
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.body.GetString({"reason"}), "Conflict");
  EXPECT_EQ(remove("DeleteOptions", uid, "1").status, 409);
  EXPECT_EQ(remove("Secret", uid, "").status, 400);
  ASSERT_EQ(Get("web").status, 200);
  const Answer gone = remove("DeleteOptions", uid, revision);
  EXPECT_EQ(gone.status, 200) << meta::WriteJson(gone.body);
  EXPECT_EQ(Get("web").status, 404);
}

// The same world, and a list in pages.
using PagesTest = ApplyTest;

TEST_F(PagesTest, AListWhoseStateIsForgottenCanGoOnWithThePresent) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_EQ(Apply(name, kSmall, "fieldManager=me").status, 201);
  }
  const std::string list = std::string(kMachines) + "?limit=1";
  const Answer first = Send({.method = "GET", .target = list});
  ASSERT_EQ(first.status, 200);
  const std::string token(first.body.GetString({"metadata", "continue"}));
  ASSERT_EQ(Apply("d", kSmall, "fieldManager=me").status, 201);
  const auto now = *world_.Run(world_.store().CurrentRevision());
  ASSERT_TRUE(world_.Run(world_.store().Compact(now)).ok());
  const Answer expired = Send({.method = "GET", .target = list + "&continue=" + token});
  EXPECT_EQ(expired.status, 410);
  EXPECT_EQ(expired.body.GetString({"reason"}), "Expired");
  const std::string present(expired.body.GetString({"metadata", "continue"}));
  ASSERT_NE(present, "");
  const Answer rest =
      Send({.method = "GET", .target = std::string(kMachines) + "?continue=" + present});
  EXPECT_EQ(rest.status, 200);
  EXPECT_EQ(rest.body.Find("items")->items().size(), 3U);
}

}  // namespace
}  // namespace berth::apiserver
