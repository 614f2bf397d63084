// SPDX-License-Identifier: Apache-2.0
// Defends: looking at objects asks for the right things and prints what kubectl's users expect.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kMachines = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
const std::string kAllMachines = "/apis/compute.ironcore.dev/v1alpha1/machines";

std::string Row(const std::string& name, const std::string& space, const std::string& pool) {
  return R"({"cells":[")" + name + R"(","Running",")" + pool +
         R"("],"object":{"metadata":{"name":")" + name + R"(","namespace":")" + space +
         R"(","labels":{"app":")" + name + R"("},"resourceVersion":"7"}}})";
}

std::string Table(const std::string& rows) {
  return R"({"kind":"Table","metadata":{"resourceVersion":"5"},"columnDefinitions":[)"
         R"({"name":"Name"},{"name":"State"},{"name":"Pool","priority":1}],"rows":[)" +
         rows + "]}";
}

std::string Machine(const std::string& name, int generation = 1) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
         name + R"(","namespace":"default","uid":"u-)" + name + R"(","generation":)" +
         std::to_string(generation) + R"(},"spec":{"power":"On"},"status":{"state":"Running"}})";
}

class GetTest : public CommandTest {};

TEST_F(GetTest, PrintsTheServersTable) {
  server().On("GET " + kMachines + "?limit=500",
              Table(Row("web", "default", "a") + "," + Row("database", "default", "b")));
  const auto ended = Run({"get", "machines"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "NAME       STATE\n"
            "web        Running\n"
            "database   Running\n");
  EXPECT_EQ(server().Last("GET " + kMachines).accept,
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  const auto wide = Run({"get", "machine", "-o", "wide", "--no-headers", "--show-labels"});
  EXPECT_EQ(wide.out,
            "web        Running   a     app=web\n"
            "database   Running   b     app=database\n");
}

TEST_F(GetTest, FollowsPages) {
  std::string first = Table(Row("a", "default", "p"));
  first.replace(first.find(R"("resourceVersion":"5")"), 21, R"("continue":"next")");
  server().On("GET " + kMachines + "?limit=500", first);
  server().On("GET " + kMachines + "?limit=500&continue=next", Table(Row("b", "default", "p")));
  EXPECT_EQ(Run({"get", "machines"}).out, "NAME   STATE\na      Running\nb      Running\n");
}

TEST_F(GetTest, ShowsNamespacesWithAllOfThem) {
  server().On("GET " + kAllMachines + "?labelSelector=app%3Dweb&fieldSelector=a%3Db&limit=500",
              Table(Row("web", "team-a", "a")));
  const auto ended =
      Run({"get", "machines", "-A", "-l", "app=web", "--field-selector=a=b", "-L", "app"});
  EXPECT_EQ(ended.out, "NAMESPACE   NAME   STATE     APP\nteam-a      web    Running   web\n");
}

TEST_F(GetTest, PutsKindsInFrontOfNamesWhenThereAreSeveral) {
  server().On("GET " + kMachines + "?limit=500", Table(Row("web", "default", "a")));
  server().On("GET /apis/storage.ironcore.dev/v1alpha1/namespaces/default/volumes?limit=500",
              Table(Row("data", "default", "a")));
  const auto ended = Run({"get", "machines,volumes"});
  EXPECT_EQ(ended.out,
            "NAME                               STATE\n"
            "machine.compute.ironcore.dev/web   Running\n"
            "\n"
            "NAME                               STATE\n"
            "volume.storage.ironcore.dev/data   Running\n");
}

TEST_F(GetTest, SaysWhenThereIsNothing) {
  server().On("GET " + kMachines + "?limit=500", Table(""));
  const auto ended = Run({"get", "machines"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "No resources found in default namespace.\n");
}

TEST_F(GetTest, AMissingObjectIsExitCode3AndTheOthersAreShown) {
  server().On("GET " + kMachines + "/web", Table(Row("web", "default", "a")));
  server().On("GET " + kMachines + "/nothing",
              StatusBody(404, "NotFound", R"(machines \"nothing\" not found)"),
              404);
  const auto ended = Run({"get", "machine", "web", "nothing"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.out, "NAME   STATE\nweb    Running\n");
  EXPECT_EQ(ended.err, "error: machines \"nothing\" not found\n");
  const auto forgiven = Run({"get", "machine", "nothing", "--ignore-not-found"});
  EXPECT_EQ(forgiven.code, 0);
  EXPECT_EQ(forgiven.err, "");
}

TEST_F(GetTest, PrintsOneObjectAsItIsAndSeveralAsAList) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On("GET " + kMachines + "/db", Machine("db"));
  EXPECT_EQ(Run({"get", "machine", "web", "-o", "jsonpath={.metadata.name}:{.spec.power}"}).out,
            "web:On");
  EXPECT_EQ(Run({"get", "machine", "web", "db", "-o", "name"}).out,
            "machine.compute.ironcore.dev/web\nmachine.compute.ironcore.dev/db\n");
  EXPECT_EQ(Run({"get", "machine/web", "machine/db", "-ojsonpath={.items[*].metadata.name}"}).out,
            "web db");
  EXPECT_TRUE(Run({"get", "machine", "web", "-o", "yaml"})
                  .out.starts_with("apiVersion: compute.ironcore.dev/v1alpha1\nkind: Machine\n"));
  EXPECT_TRUE(Run({"get", "machine", "web", "-o", "json"}).out.contains("\"power\": \"On\""));
  EXPECT_EQ(Run({"get", "machine", "web", "-o", "custom-columns=N:.metadata.name,X:.spec.x"}).out,
            "N     X\nweb   <none>\n");
}

TEST_F(GetTest, SortsByAField) {
  const auto with_size = [](const std::string& name, const std::string& size) {
    return R"({"cells":[")" + name + R"("],"object":{"metadata":{"name":")" + name +
           R"("},"spec":{"size":")" + size + R"("}}})";
  };
  server().On("GET " + kMachines + "?includeObject=Object&limit=500",
              R"({"kind":"Table","columnDefinitions":[{"name":"Name"}],"rows":[)" +
                  with_size("large", "1Gi") + "," + with_size("none", "") + "," +
                  with_size("small", "500Mi") + "]}");
  EXPECT_EQ(Run({"get", "machines", "--sort-by", "{.spec.size}"}).out,
            "NAME\nnone\nsmall\nlarge\n");
}

TEST_F(GetTest, ReadsNamesFromManifests) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  const std::string file = program_.Write("m.yaml", Machine("web"));
  EXPECT_EQ(Run({"get", "-f", file, "-o", "name"}).out, "machine.compute.ironcore.dev/web\n");
}

TEST_F(GetTest, WatchPrintsTheListThenChangesInTheSameColumns) {
  server().On("GET " + kMachines + "?limit=500", Table(Row("database", "default", "a")));
  server().watches[kMachines + "?watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
      .chunks = {
          R"({"type":"MODIFIED","object":{"kind":"Table","columnDefinitions":null,"rows":[)" +
          Row("web", "default", "a") + "]}}\n"}};
  const auto ended = Run({"get", "machines", "-w", "--output-watch-events"});
  EXPECT_EQ(ended.out,
            "EVENT      NAME       STATE\n"
            "ADDED      database   Running\n"
            "MODIFIED   web        Running\n");
  EXPECT_EQ(ended.code, 5);  // the fake hangs up
}

TEST_F(GetTest, NamesMistakes) {
  struct Case {
    std::vector<std::string> line;
    int code;
    std::string err;
  };
  const std::vector<Case> cases = {
      {{"get"}, 2, "error: no kind is given\nnext: berth api-resources lists the kinds\n"},
      {{"get", "machnes"},
       3,
       "error: the server has no kind \"machnes\"; did you mean \"machines\"?\n"
       "next: berth api-resources lists the kinds\n"},
      {{"get", "machines", "-o", "xml"},
       2,
       "error: --output: \"xml\" is not json, yaml, name, wide, jsonpath=TEMPLATE or "
       "custom-columns=HEADER:PATH,...\n"},
      {{"get", "machines", "web", "-l", "a=b"},
       2,
       "error: a name and a selector cannot be given together\n"},
      {{"get", "machine,volume", "-w"},
       2,
       "error: --watch follows one kind or one object\nnext: berth watch follows several kinds\n"},
  };
  for (const Case& one : cases) {
    const auto ended = Run(one.line);
    EXPECT_EQ(ended.code, one.code) << ended.err;
    EXPECT_EQ(ended.err, one.err);
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(GetTest, RawPrintsTheAnswerToAnyPath) {
  server().On("GET /readyz?verbose=", "[+]store ok\n");
  EXPECT_EQ(Run({"get", "--raw", "/readyz?verbose"}).out, "[+]store ok\n");
  server().On("GET /version", R"({"major":"1"})");
  EXPECT_EQ(Run({"get", "--raw=/version"}).out, "{\"major\":\"1\"}\n");
  EXPECT_EQ(Run({"get", "--raw", "/nowhere"}).code, 3);
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"get", "--raw", "version"},
                                             {"get", "--raw", "/a%zz"},
                                             {"get", "machines", "--raw", "/"}}) {
    const auto ended = Run(words);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_TRUE(ended.err.starts_with("error: --raw")) << ended.err;
  }
}

TEST_F(GetTest, AServerThatIsDownIsExitCode5WithTheNextStep) {
  server().is_down = true;
  const auto ended = Run({"get", "machines"});
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.err,
            "error: connect to 127.0.0.1:8443: connection refused\n"
            "next: look at the server: berth doctor; start one: berth up\n");
}

TEST_F(GetTest, WithoutAnyKubeconfigThereIsAHint) {
  program_.environment.variables = {{"KUBECONFIG", "/nowhere/kubeconfig"}};
  const auto ended = Run({"get", "machines"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(
      ended.err,
      "error: no server is known: $KUBECONFIG names /nowhere/kubeconfig, which does not exist\n"
      "next: start a server with berth up, or set KUBECONFIG to its kubeconfig\n");
}

TEST_F(GetTest, DescribeShowsTheObjectWithItsEvents) {
  server().On("GET " + kMachines + "/web", Machine("web"));
  server().On(
      "GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dweb%2C"
      "involvedObject.kind%3DMachine%2CinvolvedObject.uid%3Du-web&limit=500",
      R"({"items":[{"type":"Normal","reason":"Bound","message":"to pool a",
        "lastTimestamp":"2023-11-14T22:13:10Z"}]})");
  const auto ended = Run({"describe", "machine", "web"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.contains("Name:         web\n")) << ended.out;
  EXPECT_TRUE(ended.out.contains("  Normal   Bound    10s")) << ended.out;
}

TEST_F(GetTest, DescribeTakesABeginningForTheName) {
  server().On("GET " + kMachines + "/we", StatusBody(404, "NotFound", "no"), 404);
  server().On("GET " + kMachines + "?limit=500",
              R"({"items":[{"metadata":{"name":"web"}},{"metadata":{"name":"db"}}]})");
  const auto ended = Run({"describe", "machine", "we", "--show-events=false"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.contains("Name:         web\n")) << ended.out;
  EXPECT_FALSE(ended.out.contains("db")) << ended.out;
}

TEST_F(GetTest, EventsComeOldestFirst) {
  server().On("GET /api/v1/namespaces/default/events?limit=500",
              R"({"items":[
        {"type":"Normal","reason":"B","message":"later","lastTimestamp":"2023-11-14T22:13:10Z",
         "involvedObject":{"kind":"Machine","name":"web"}},
        {"type":"Warning","reason":"A","message":"earlier","count":4,
         "lastTimestamp":"2023-11-14T22:12:20Z","involvedObject":{"kind":"Machine","name":"web"}}]})");
  EXPECT_EQ(Run({"events"}).out,
            "LAST SEEN   TYPE      REASON   OBJECT        MESSAGE\n"
            "60s (x4)    Warning   A        machine/web   earlier\n"
            "10s         Normal    B        machine/web   later\n");
  EXPECT_EQ(Run({"events", "-o", "jsonpath={.items[*].reason}"}).out, "A B");
}

TEST_F(GetTest, EventsOfOneObjectAreAskedFor) {
  server().On(
      "GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DMachine%2C"
      "involvedObject.name%3Dweb%2Ctype%3DWarning&limit=500",
      R"({"items":[]})");
  const auto ended = Run({"events", "--for", "machine/web", "--types=Warning"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "No events found in default namespace.\n");
}

TEST_F(GetTest, WatchFollowsSeveralKinds) {
  const std::string volumes = "/apis/storage.ironcore.dev/v1alpha1/namespaces/default/volumes";
  server().On("GET " + kMachines + "?limit=1", R"({"metadata":{"resourceVersion":"5"}})");
  server().On("GET " + volumes + "?limit=1", R"({"metadata":{"resourceVersion":"6"}})");
  server().watches[kMachines + "?watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
      .chunks = {R"({"type":"ADDED","object":)" + Machine("web") + "}\n"}};
  server().watches[volumes + "?watch=true&allowWatchBookmarks=true&resourceVersion=6"] = {
      .chunks = {R"({"type":"DELETED","object":{"apiVersion":"storage.ironcore.dev/v1alpha1",)"
                 R"("kind":"Volume","metadata":{"name":"data"}}})"
                 "\n"}};
  const auto ended = Run({"watch", "machines,volumes"});
  EXPECT_EQ(ended.out,
            "TIME       EVENT      NAMESPACE   OBJECT                             STATE\n"
            "22:13:20   ADDED      default     machine.compute.ironcore.dev/web   Running\n"
            "22:13:20   DELETED                volume.storage.ironcore.dev/data\n");
}

TEST_F(GetTest, ListsKindsAndMarksAliases) {
  const auto ended = Run({"api-resources", "--api-group=compute.OpenKCM.dev"});
  EXPECT_EQ(ended.out,
            "NAME             SHORTNAMES   APIVERSION                     NAMESPACED   KIND"
            "           ALIAS OF\n"
            "machines                      compute.OpenKCM.dev/v1alpha1   true         Machine"
            "        compute.ironcore.dev\n"
            "machineclasses                compute.OpenKCM.dev/v1alpha1   false        MachineClass"
            "   compute.ironcore.dev\n");
  EXPECT_EQ(
      Run({"api-resources", "--namespaced=false", "-o", "name"}).out,
      "namespaces\nmachineclasses.compute.ironcore.dev\nmachineclasses.compute.OpenKCM.dev\n");
  EXPECT_EQ(Run({"api-versions"}).out,
            "compute.OpenKCM.dev/v1alpha1\ncompute.ironcore.dev/v1alpha1\n"
            "storage.ironcore.dev/v1alpha1\nv1\n");
}

TEST_F(GetTest, ExplainNeedsNoServer) {
  server().is_down = true;
  program_.environment.variables.clear();
  const auto ended = Run({"explain", "machine.spec.volumes"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.contains("Machine")) << ended.out;
  const auto wrong = Run({"explain", "machine.spec.volmes"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(wrong.err.contains("volumes")) << wrong.err;
  EXPECT_EQ(Run({"explain", "machine", "--recursive"}).code, 0);
}

}  // namespace
}  // namespace berth::cli
