// SPDX-License-Identifier: Apache-2.0
// Defends: changing objects sends exactly the change that was asked for, and says what became of
// it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/commands/fake_run.h"
#include "cli/commands/last_applied.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

const std::string kMachines = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
const std::string kWrite = "?fieldManager=berth";
const std::string kStrict = "?fieldManager=berth&fieldValidation=Strict";

meta::Value Json(std::string_view text) {
  auto value = meta::ParseJson(text);
  EXPECT_TRUE(value.ok()) << value.status() << text;
  return value.ok() ? *std::move(value) : meta::Value();
}

std::string Machine(const std::string& name, const std::string& more = "") {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
         name + R"(","namespace":"default","uid":"u-)" + name + R"(","resourceVersion":"5")" +
         more + R"(},"spec":{"power":"On"}})";
}

// The same with another revision.
std::string Changed(const std::string& name) {
  std::string out = Machine(name);
  out.replace(out.find(R"("resourceVersion":"5")"), 21, R"("resourceVersion":"6")");
  return out;
}

constexpr std::string_view kManifest = R"(apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata:
  name: web
spec:
  power: "On"
)";

class ChangeTest : public CommandTest {};

TEST_F(ChangeTest, ApplyCreatesWhatIsNotThereAndRemembersTheManifest) {
  server().On("POST " + kMachines + kStrict, Machine("web"), 201);
  const auto ended = Run({"apply", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web created\n");
  const meta::Value sent = Json(server().Last("POST").body);
  EXPECT_EQ(sent.GetString({"metadata", "namespace"}), "default");
  EXPECT_EQ(sent.GetString(
                {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}),
            R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":)"
            R"({"annotations":{},"name":"web","namespace":"default"},"spec":{"power":"On"}})"
            "\n");
}

TEST_F(ChangeTest, ApplyingTheSameTwiceChangesNothing) {
  meta::Value object = WithLastApplied(Json(
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine",
        "metadata":{"name":"web","namespace":"default"},"spec":{"power":"On"}})"));
  server().On("GET " + kMachines + "/web", meta::WriteJson(object));
  const auto ended = Run({"apply", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web unchanged\n");
  EXPECT_EQ(server().Lines(), std::vector<std::string>{"GET " + kMachines + "/web"});
}

TEST_F(ChangeTest, ApplySendsTheDifferenceToWhatWasAppliedAndWhatIs) {
  meta::Value object = WithLastApplied(Json(
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":"web",
        "namespace":"default","labels":{"old":"1"}},"spec":{"power":"Off"}})"));
  object.Find("metadata")->Find("labels")->Set("of-others", "2");
  server().On("GET " + kMachines + "/web", meta::WriteJson(object));
  object.Find("metadata")->Set("resourceVersion", "4");
  server().answers["GET " + kMachines + "/web"] = {
      {.status = 200, .body = meta::WriteJson(object), .headers = {}}};
  server().On("PATCH " + kMachines + "/web" + kStrict, Machine("web"));
  std::string manifest(kManifest);
  manifest.replace(manifest.find("spec:"), 0, "  labels: {new: \"3\"}\n");
  const auto ended = Run({"apply", "-f", "-"}, manifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web configured\n");
  const auto asked = server().Last("PATCH");
  EXPECT_EQ(asked.content_type, "application/strategic-merge-patch+json");
  const meta::Value patch = Json(asked.body);
  EXPECT_EQ(patch.GetString({"spec", "power"}), "On");
  const meta::Value* labels = patch.Get({"metadata", "labels"});
  // Our old label goes, our new one comes, the others' stays.
  ASSERT_NE(labels, nullptr) << asked.body;
  ASSERT_NE(labels->Find("old"), nullptr) << asked.body;
  EXPECT_TRUE(labels->Find("old")->is_null());
  EXPECT_EQ(labels->GetString({"new"}), "3");
  EXPECT_EQ(labels->Find("of-others"), nullptr);
}

TEST_F(ChangeTest, ApplyBelievesTheServerThatNothingChanged) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("PATCH " + kMachines + "/web" + kStrict, Machine("web"));
  EXPECT_EQ(Run({"apply", "-f", "-"}, kManifest).out,
            "machine.compute.ironcore.dev/web unchanged\n");
}

TEST_F(ChangeTest, ServerSideApplySendsTheManifestAsItIs) {
  server().On("PATCH " + kMachines + "/web?fieldManager=deploy&fieldValidation=Strict",
              Machine("web"));
  const auto ended =
      Run({"apply", "--server-side", "--field-manager", "deploy", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web serverside-applied\n") << ended.err;
  const auto asked = server().Last("PATCH");
  EXPECT_EQ(asked.content_type, "application/apply-patch+yaml");
  EXPECT_FALSE(asked.body.contains("last-applied")) << asked.body;
}

TEST_F(ChangeTest, AConflictOfServerSideApplySaysHowToGoOn) {
  server().On("PATCH " + kMachines + "/web" + kStrict,
              StatusBody(409, "Conflict", "Apply failed with 1 conflict"),
              409);
  server().On("PATCH " + kMachines + "/web" + kStrict + "&force=true", Machine("web"));
  const auto refused = Run({"apply", "--server-side", "-f", "-"}, kManifest);
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(refused.err.contains("Apply failed with 1 conflict")) << refused.err;
  EXPECT_TRUE(refused.err.contains("--force-conflicts")) << refused.err;
  EXPECT_EQ(Run({"apply", "--server-side", "--force-conflicts", "-f", "-"}, kManifest).code, 0);
  EXPECT_NE(Run({"apply", "--force-conflicts", "-f", "-"}, kManifest).code, 0);
  EXPECT_NE(Run({"apply", "--server-side", "--dry-run=client", "-f", "-"}, kManifest).code, 0);
}

TEST_F(ChangeTest, DeletesFilesFromBottomToTop) {
  server().On("DELETE /api/v1/namespaces/a", "{}");
  server().On("DELETE " + kMachines + "/web", "{}");
  const auto ended =
      Run({"delete", "-f", "-", "--wait=false"},
          "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n" + std::string(kManifest));
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev \"web\" deleted\nnamespace \"a\" deleted\n")
      << ended.err;
}

TEST_F(ChangeTest, ApplyTriesAgainWhenSomeoneElseCreatedItMeanwhile) {
  server().answers["GET " + kMachines + "/web"] = {
      {.status = 404, .body = StatusBody(404, "NotFound", "no"), .headers = {}},
      {.status = 200, .body = Machine("web"), .headers = {}}};
  server().On("POST " + kMachines + kStrict, StatusBody(409, "AlreadyExists", "there"), 409);
  server().On("PATCH " + kMachines + "/web" + kStrict, Changed("web"));
  const auto ended = Run({"apply", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web configured\n");
  EXPECT_TRUE(ended.err.contains("was not made by apply")) << ended.err;
}

TEST_F(ChangeTest, DryRunsSayWhoRanThem) {
  server().On("POST " + kMachines + "?fieldManager=berth&dryRun=All&fieldValidation=Strict",
              Machine("web"),
              201);
  EXPECT_EQ(Run({"apply", "-f", "-", "--dry-run=server"}, kManifest).out,
            "machine.compute.ironcore.dev/web created (server dry run)\n");
  EXPECT_EQ(Run({"apply", "-f", "-", "--dry-run=client", "-o", "name"}, kManifest).out,
            "machine.compute.ironcore.dev/web\n");
  EXPECT_EQ(Run({"create", "-f", "-", "--dry-run=client"}, kManifest).out,
            "machine.compute.ironcore.dev/web created (dry run)\n");
}

TEST_F(ChangeTest, OneBadObjectDoesNotStopTheOthers) {
  server().On("POST /api/v1/namespaces" + kStrict,
              R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}})",
              201);
  const auto ended = Run({"apply", "-f", "-"},
                         "apiVersion: v1\nkind: Nmaespace\nmetadata: {name: a}\n---\n"
                         "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.out, "namespace/b created\n");
  EXPECT_EQ(
      ended.err,
      "error: standard input, document 1: the server has no kind \"Nmaespace\" in v1; did you "
      "mean \"Namespace\"?\nnext: berth api-resources lists the kinds\n");
}

TEST_F(ChangeTest, AllFieldErrorsAreShown) {
  server().On(
      "POST " + kMachines + kStrict,
      R"({"kind":"Status","reason":"Invalid","code":422,"message":"Machine \"web\" is invalid",
                "details":{"causes":[{"field":"spec.a","message":"Required value"},
                {"field":"spec.b","message":"Invalid value: 5"}]}})",
      422);
  const auto ended = Run({"create", "-f", "-"}, kManifest);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err,
            "error: standard input: Machine \"web\" is invalid\n"
            "  spec.a: Required value\n"
            "  spec.b: Invalid value: 5\n"
            "next: see the fields and their rules: berth explain KIND\n");
}

TEST_F(ChangeTest, ANamespaceInTheManifestMustAgreeWithTheFlag) {
  const auto ended = Run({"apply", "-n", "prod", "-f", "-"}, Machine("web"));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.err.contains(
      R"(machine.compute.ironcore.dev/web is in namespace "default", but --namespace says "prod")"))
      << ended.err;
}

TEST_F(ChangeTest, CreatesNamespacesSecretsAndConfigMaps) {
  server().On("POST /api/v1/namespaces" + kStrict,
              R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"}})",
              201);
  EXPECT_EQ(Run({"create", "namespace", "team-a"}).out, "namespace/team-a created\n");
  server().On("POST /api/v1/namespaces/default/secrets" + kStrict,
              R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"login"}})",
              201);
  const std::string file = program_.Write("key", "bytes");
  const auto secret = Run({"create",
                           "secret",
                           "generic",
                           "login",
                           "--from-literal=password=a=b,c",
                           "--from-file=" + file,
                           "--from-file=other=" + file,
                           "--type=Opaque"});
  EXPECT_EQ(secret.out, "secret/login created\n") << secret.err;
  const meta::Value sent = Json(server().Last("POST /api/v1/namespaces/default/secrets").body);
  EXPECT_EQ(sent.GetString({"data", "password"}), "YT1iLGM=");
  EXPECT_EQ(sent.GetString({"data", "key"}), "Ynl0ZXM=");
  EXPECT_EQ(sent.GetString({"data", "other"}), "Ynl0ZXM=");
  EXPECT_EQ(sent.GetString({"type"}), "Opaque");
  server().On("POST /api/v1/namespaces/default/configmaps" + kStrict,
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})",
              201);
  EXPECT_EQ(Run({"create", "configmap", "c", "--from-literal=level=info"}).code, 0);
  EXPECT_EQ(Run({"create", "cm", "c", "--from-literal=level=info"}).code, 0);
  EXPECT_EQ(Json(server().Last("POST").body).GetString({"data", "level"}), "info");
  EXPECT_EQ(Run({"create", "secret", "generic", "x", "--from-literal=nothing"}).code, 2);
  EXPECT_EQ(Run({"create", "namespace"}).code, 2);
  EXPECT_EQ(Run({"create"}).code, 2);
}

TEST_F(ChangeTest, DeletesAndWaitsUntilTheObjectIsGone) {
  server().On("DELETE " + kMachines + "/web", Machine("web"));
  const std::string list = kMachines + "?fieldSelector=metadata.name%3Dweb";
  server().On("GET " + list,
              R"({"metadata":{"resourceVersion":"5"},"items":[)" + Machine("web") + "]}");
  server().watches[list + "&watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
      .chunks = {R"({"type":"DELETED","object":)" + Machine("web") + "}\n"}};
  const auto ended = Run({"delete", "machine", "web", "--cascade=foreground"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev \"web\" deleted\n");
  EXPECT_EQ(Json(server().Last("DELETE").body).GetString({"propagationPolicy"}), "Foreground");
}

TEST_F(ChangeTest, ADeletionThatTakesItsTimeSaysWhatItWaitsFor) {
  const std::string used = Machine(
      "web", R"(,"annotations":{"berth.dev/used-by":"machine hello"},"finalizers":["x/y"])");
  const std::string held = Machine("web", R"(,"finalizers":["x/y"])");
  const std::string list = kMachines + "?fieldSelector=metadata.name%3Dweb";
  server().On("DELETE " + kMachines + "/web", used);
  server().On("GET " + list, R"({"metadata":{"resourceVersion":"5"},"items":[)" + used + "]}");
  server().watches[list + "&watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {};
  server().On("GET " + kMachines + "/web", used);
  server().On("GET " + kMachines + "/web", held);
  auto ended = Run({"delete", "machine", "web", "--timeout=10s"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.err.starts_with(
      "waiting for machine.compute.ironcore.dev/web: it is used by machine hello\n"))
      << ended.err;
  ended = Run({"delete", "machine", "web", "--timeout=10s"});
  EXPECT_TRUE(ended.err.contains("web: its finalizers are [\"x/y\"]\n")) << ended.err;
  ended = Run({"delete", "machine", "web", "--timeout=1s"});
  EXPECT_TRUE(ended.err.starts_with("error: timed out waiting for deletion")) << ended.err;
}

TEST_F(ChangeTest, P4_5_DeletingByForceNamesTheRisk) {
  server().On("DELETE " + kMachines + "/web?force=true", Machine("web"));
  const auto ended = Run({"delete", "machine", "web", "--force", "--wait=false"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev \"web\" deleted\n");
  EXPECT_TRUE(ended.err.contains("may run on until its host is back")) << ended.err;
}

TEST_F(ChangeTest, DeletesWhatSelectorsFind) {
  server().On("GET " + kMachines + "?labelSelector=app%3Dx&limit=500",
              R"({"items":[{"metadata":{"name":"a","namespace":"default"}},
                {"metadata":{"name":"b","namespace":"default"}}]})");
  server().On("DELETE " + kMachines + "/a", Machine("a"));
  server().On("DELETE " + kMachines + "/b", StatusBody(404, "NotFound", "gone"), 404);
  const auto ended = Run({"delete", "machines", "-l", "app=x", "--wait=false", "-o", "name"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/a\n");
}

TEST_F(ChangeTest, DeletesNothingWithoutANameOrASelector) {
  const auto ended = Run({"delete", "machines"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "error: machines: no name is given\n"
            "next: name objects, or select with -l LABELS or --all\n");
  EXPECT_EQ(server().Lines(), std::vector<std::string>{});
}

TEST_F(ChangeTest, DeleteReportsWhatIsNotThereUnlessTold) {
  server().On(
      "DELETE " + kMachines + "/x", StatusBody(404, "NotFound", "machines x not found"), 404);
  EXPECT_EQ(Run({"delete", "machine", "x"}).code, 3);
  EXPECT_EQ(Run({"delete", "machine", "x", "--ignore-not-found"}).code, 0);
  const auto dry = Run({"delete", "machine", "x", "--dry-run=client"});
  EXPECT_EQ(dry.out, "machine.compute.ironcore.dev \"x\" deleted (dry run)\n");
}

TEST_F(ChangeTest, PatchesInThreeWays) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("PATCH " + kMachines + "/web" + kWrite, Machine("web"));
  EXPECT_EQ(Run({"patch", "machine", "web", "-p", "spec: {power: 'Off'}"}).out,
            "machine.compute.ironcore.dev/web patched (no change)\n");
  EXPECT_EQ(server().Last("PATCH").content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(server().Last("PATCH").body, R"({"spec":{"power":"Off"}})");
  EXPECT_EQ(Run({"patch", "machine", "web", "--type=merge", "-p", "{}"}).code, 0);
  EXPECT_EQ(server().Last("PATCH").content_type, "application/merge-patch+json");
  const std::string file =
      program_.Write("patch.json", R"([{"op":"remove","path":"/metadata/labels/a"}])");
  EXPECT_EQ(Run({"patch", "machine", "web", "--type=json", "--patch-file", file}).code, 0);
  EXPECT_EQ(server().Last("PATCH").content_type, "application/json-patch+json");
  EXPECT_EQ(Run({"patch", "machine", "web", "--type=json", "-p", "{}"}).code, 2);
  EXPECT_EQ(Run({"patch", "machine", "web"}).code, 2);
}

TEST_F(ChangeTest, LabelsAreSetRemovedAndProtected) {
  server().On("GET " + kMachines + "/web", Machine("web", R"(,"labels":{"a":"1","b":"2"})"));
  server().On("PATCH " + kMachines + "/web" + kWrite, Machine("web"));
  const auto ended = Run({"label", "machine", "web", "c=3", "b-", "a=1"});
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web labeled\n") << ended.err;
  EXPECT_EQ(Json(server().Last("PATCH").body),
            Json(R"({"metadata":{"resourceVersion":"5","labels":{"b":null,"c":"3"}}})"));
  const auto refused = Run({"label", "machine", "web", "a=9"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_EQ(refused.err,
            "error: machine.compute.ironcore.dev/web: the label \"a\" already has a value\n"
            "next: --overwrite replaces it\n");
  EXPECT_EQ(Run({"label", "machine", "web", "a=9", "--overwrite"}).code, 0);
  EXPECT_EQ(Json(server().Last("PATCH").body), Json(R"({"metadata":{"labels":{"a":"9"}}})"));
  EXPECT_EQ(Run({"label", "machine", "web", "a=1"}).out,
            "machine.compute.ironcore.dev/web not labeled\n");
  EXPECT_EQ(Run({"label", "machine", "web", "--list"}).out,
            "machine.compute.ironcore.dev/web\n  a=1\n  b=2\n");
  EXPECT_EQ(Run({"label", "machine", "web"}).code, 2);
  EXPECT_EQ(Run({"label", "machine", "web", "x=1", "x=2"}).code, 2);
  EXPECT_EQ(Run({"annotate", "machine", "web", "note=hello"}).out,
            "machine.compute.ironcore.dev/web annotated\n");
}

class EditTest : public ChangeTest {
 protected:
  // Each round of the editor replaces one text by another and keeps what it saw.
  void Edits(std::vector<std::pair<std::string, std::string>> changes) {
    program_.environment.variables["EDITOR"] = "myeditor --wait";
    program_.environment.run_program = [this, changes = std::move(changes), round = size_t{0}](
                                           const std::vector<std::string>& command) mutable {
      EXPECT_EQ(command.size(), 3U);
      EXPECT_EQ(command[0], "myeditor");
      std::ifstream in(command[2]);
      std::string text((std::istreambuf_iterator<char>(in)), {});
      seen_.push_back(text);
      const auto& [from, to] = changes[std::min(round++, changes.size() - 1)];
      if (const size_t at = text.find(from); !from.empty() && at != std::string::npos) {
        text.replace(at, from.size(), to);
      }
      std::ofstream(command[2]) << text;
      return OkStatus();
    };
  }
  std::vector<std::string> seen_;
};

TEST_F(EditTest, SendsWhatWasChangedInTheEditor) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("PATCH " + kMachines + "/web" + kStrict, Machine("web"));
  Edits({{"power: \"On\"", "power: \"Off\""}});
  const auto ended = Run({"edit", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err << (seen_.empty() ? "" : seen_[0]);
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web edited\n");
  EXPECT_EQ(Json(server().Last("PATCH").body).GetString({"spec", "power"}), "Off");
}

TEST_F(EditTest, DoesNothingWithoutAChange) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  Edits({{"", ""}});
  const auto ended = Run({"edit", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "Edit cancelled, no changes made.\n");
}

TEST_F(EditTest, OpensAgainWithTheReasonAndKeepsTheWork) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("PATCH " + kMachines + "/web" + kStrict,
              StatusBody(422, "Invalid", "spec.power: no such power"),
              422);
  Edits({{"power: \"On\"", "power: Maybe"}, {"", ""}});
  const auto ended = Run({"edit", "machine", "web"});
  EXPECT_EQ(ended.code, 1);
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_TRUE(seen_[1].contains("# error: spec.power: no such power\n")) << seen_[1];
  EXPECT_TRUE(seen_[1].contains("power: Maybe")) << seen_[1];
  EXPECT_TRUE(ended.err.contains("A copy of your changes is in ")) << ended.err;
}

TEST_F(EditTest, BrokenYamlIsOpenedAgainToo) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("PATCH " + kMachines + "/web" + kStrict, Machine("web"));
  Edits({{"power: \"On\"", "power: [Off"}, {"power: [Off", "power: \"Off\""}});
  const auto ended = Run({"edit", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_TRUE(seen_[1].contains("# error: invalid YAML")) << seen_[1];
}

class WaitTest : public ChangeTest {
 protected:
  void Serve(const std::string& items, std::vector<std::string> chunks) {
    const std::string list = kMachines + "?fieldSelector=metadata.name%3Dweb";
    server().On("GET " + list, R"({"metadata":{"resourceVersion":"5"},"items":[)" + items + "]}");
    server().watches[list + "&watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
        .chunks = std::move(chunks)};
  }
  static std::string Ready(const std::string& status, int observed) {
    return R"({"metadata":{"name":"web","generation":2},"status":{"state":"Running","conditions":[)"
           R"({"type":"Ready","status":")" +
           status + R"(","observedGeneration":)" + std::to_string(observed) + "}]}}";
  }
};

TEST_F(WaitTest, IsOverWhenTheConditionIsThereForTheCurrentGeneration) {
  Serve(Ready("True", 1),
        {R"({"type":"MODIFIED","object":)" + Ready("False", 2) + "}\n",
         R"({"type":"MODIFIED","object":)" + Ready("True", 2) + "}\n"});
  const auto ended = Run({"wait", "machine/web", "--for=condition=ready"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "machine.compute.ironcore.dev/web condition met\n");
}

TEST_F(WaitTest, UnderstandsFieldsDeletionAndCreation) {
  Serve(Ready("True", 2), {});
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=jsonpath={.status.state}=Running"}).code, 0);
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=jsonpath={.status.state}"}).code, 0);
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=create"}).code, 0);
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=condition=Ready=false", "--timeout=1s"}).code, 1);
}

TEST_F(WaitTest, WhatDoesNotExistCannotBecomeReady) {
  Serve("", {});
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=condition=Ready"}).code, 3);
  EXPECT_EQ(Run({"wait", "machine", "web", "--for=delete"}).code, 0);
}

TEST_F(WaitTest, NamesGoalsThatItDoesNotUnderstand) {
  for (const std::string goal : {"ready", "condition=", "condition=a=b=c", "jsonpath=", ""}) {
    const auto ended = Run({"wait", "machine", "web", "--for=" + goal});
    EXPECT_EQ(ended.code, 2) << goal;
    EXPECT_TRUE(ended.err.contains("--for")) << ended.err;
  }
  EXPECT_EQ(Run({"wait", "machine", "web"}).code, 2);
}

}  // namespace
}  // namespace berth::cli
