// SPDX-License-Identifier: Apache-2.0
// Defends: commands that can lose something name the risk, ask first, refuse
// what is unsafe, and do their steps in an order in which a failure loses
// nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/commands/fake_run.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

const std::string kCompute = "/apis/compute.ironcore.dev/v1alpha1";
const std::string kStorage = "/apis/storage.ironcore.dev/v1alpha1";
const std::string kPool = kCompute + "/machinepools/alpha";
const std::string kOnPool =
    kCompute + "/machines?fieldSelector=status.placement.poolUID%3Du-1&limit=500";
const std::string kOnDisks =
    kStorage + "/volumes?fieldSelector=status.placement.poolUID%3Du-2&limit=500";
const std::string kRecords = "/api/v1/namespaces/berth-system/configmaps";

std::string Pool(const std::string& ready, const std::string& more = "") {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool","metadata":)"
         R"({"name":"alpha","uid":"u-1")" +
         more +
         R"(},"spec":{"unschedulable":true,"hostRef":{"name":"rack"}},"status":{)"
         R"("agent":{"mode":"Session"},"conditions":[{"type":"Ready","status":")" +
         ready +
         R"x("},{"type":"Orphans","status":"True","message":"1 left alone: Machine a/b (o-1)"}]}})x";
}
const std::string kDisks =
    R"({"apiVersion":"storage.ironcore.dev/v1alpha1","kind":"VolumePool","metadata":{"name":"disks",)"
    R"("uid":"u-2"},"spec":{"unschedulable":true,"hostRef":{"name":"rack"}},)"
    R"("status":{"agent":{"mode":"Session"}}})";
const std::string kMachine =
    R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":"web",)"
    R"("namespace":"shop","uid":"m-1","resourceVersion":"7"},"spec":{"ignitionRef":{"name":"boot"},)"
    R"("volumes":[{"name":"d","volumeRef":{"name":"data"}}]},)"
    R"("status":{"placement":{"pool":"alpha","poolUID":"u-1","epoch":3}}})";
const std::string kVolume =
    R"({"apiVersion":"storage.ironcore.dev/v1alpha1","kind":"Volume","metadata":{"name":"data",)"
    R"("namespace":"shop"},"spec":{"encryption":{"secretRef":{"name":"disk-key"}}},)"
    R"("status":{"access":{"secretRef":{"name":"ceph"}}}})";

// Of a poollet that was written for IronCore, and what names it.
const std::string kLegacyPool =
    R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool","metadata":)"
    R"({"name":"alpha","uid":"u-1"},"spec":{"unschedulable":true},"status":{"state":"Ready"}})";
const std::string kNaming =
    kCompute + "/machines?fieldSelector=spec.machinePoolRef.name%3Dalpha&limit=500";

std::string List(const std::string& items) {
  return R"({"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"9"},"items":[)" +
         items + "]}";
}

class PoolHostsTest : public CommandTest {
 protected:
  PoolHostsTest() {
    ServeKinds(kCompute, "compute.ironcore.dev/v1alpha1", "machine", "Machine");
    ServeKinds(kStorage, "storage.ironcore.dev/v1alpha1", "volume", "Volume");
    server().On("GET " + kStorage + "/volumepools/disks", kDisks);
    server().On("GET " + kCompute + "/machinepools?limit=500", List(Pool("False")));
    server().On("GET " + kStorage + "/volumepools?limit=500", List(""));
    server().On("GET " + kOnPool, List(kMachine));
    server().On("GET " + kOnDisks, List(""));
    server().On("GET /version", "{}");
  }
  void ServeKinds(const std::string& path,
                  const std::string& version,
                  const std::string& word,
                  const std::string& kind) {
    server().answers["GET " + path] = {};
    server().On("GET " + path,
                R"({"kind":"APIResourceList","groupVersion":")" + version +
                    R"(","resources":[{"name":")" + word + R"(s","singularName":")" + word +
                    R"(","namespaced":true,"kind":")" + kind +
                    R"(","verbs":["get","list","patch"]},{"name":")" + word +
                    R"(pools","singularName":")" + word + R"(pool","namespaced":false,"kind":")" +
                    kind + R"(Pool","verbs":["get","list","patch"]}]})");
  }
  // Lines of everything that was changed, in order.
  std::vector<std::string> Changes() {
    std::vector<std::string> out;
    for (const auto& asked : server().asked) {
      if (!asked.line.starts_with("GET ")) out.push_back(asked.line);
    }
    return out;
  }
  // In place of what was answered before.
  void Instead(const std::string& line, const std::string& body) {
    server().answers[line] = {{.status = 200, .body = body, .headers = {}}};
  }
};

TEST_F(PoolHostsTest, FenceNeedsTheOperatorsWord) {
  server().On("GET " + kPool, Pool("Unknown"));
  const auto asked = Run({"pool", "fence", "alpha"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("the same machine runs twice"), std::string::npos) << asked.err;
  EXPECT_NE(asked.err.find("--yes"), std::string::npos) << asked.err;
  const auto dry = Run({"pool", "fence", "alpha", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_EQ(dry.out,
            "machinepool.compute.ironcore.dev/alpha would be fenced: "
            "1 would be let go\n");
  program_.environment.terminal.in_is_terminal = true;
  EXPECT_EQ(Run({"pool", "fence", "alpha"}, "no\n").code, 1);
  EXPECT_TRUE(Changes().empty());
}

TEST_F(PoolHostsTest, G4_FenceLetsGoOfWhatIsThereWithTheOperatorsProof) {
  server().On("GET " + kPool, Pool("Unknown"));
  server().On("PATCH " + kPool + "?fieldManager=berth", Pool("Unknown"));
  server().On("DELETE " + kCompute + "/namespaces/shop/machines/web/binding", "{}");
  program_.environment.terminal.in_is_terminal = true;
  const auto ended = Run({"pool", "fence", "alpha"}, "yes\n");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "machinepool.compute.ironcore.dev/alpha already cordoned\n"
            "machine.compute.ironcore.dev/web let go\n"
            "machinepool.compute.ironcore.dev/alpha fenced: 1 let go\n");
  const auto body = meta::ParseJson(server().Last("DELETE").body);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body->GetString({"uid"}), "m-1");
  EXPECT_EQ(body->Find("placement")->as_int(), 3);
  EXPECT_EQ(body->GetString({"proof"}), "OperatorFenced");
  EXPECT_EQ(body->GetString({"reason"}), "OperatorFenced");
  // After a restore it is not waited for.
  const auto patch = meta::ParseJson(server().Last("PATCH").body);
  ASSERT_TRUE(patch.ok());
  EXPECT_EQ(patch->GetString({"metadata", "annotations", "berth.dev/off"}), "true");
}

TEST_F(PoolHostsTest, R4_1_AFenceOfAPoolOfTheApiModeSaysWhatItsPoolletWillNotDo) {
  server().On("GET " + kPool, kLegacyPool);
  // Of the two that name the pool the server has placed one.
  server().On("GET " + kNaming,
              List(kMachine + "," +
                   R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":)"
                   R"({"name":"own","namespace":"shop"},"spec":{}})"));
  server().On("PATCH " + kPool + "?fieldManager=berth", kLegacyPool);
  server().On("DELETE " + kCompute + "/namespaces/shop/machines/web/binding", "{}");
  const auto asked = Run({"pool", "fence", "alpha"});
  EXPECT_NE(asked.err.find("does not stop what was started elsewhere"), std::string::npos)
      << asked.err;
  const auto ended = Run({"pool", "fence", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.out.find("machine.compute.ironcore.dev/web let go"), std::string::npos);
  EXPECT_NE(ended.err.find("machine.compute.ironcore.dev/own names "), std::string::npos)
      << ended.err;
  // Without a fence it would have to be drained, and nothing leaves.
  const auto removed = Run({"pool", "remove", "alpha", "--yes"});
  EXPECT_EQ(removed.code, 2);
  EXPECT_NE(removed.err.find("still there: shop/web, shop/own"), std::string::npos) << removed.err;
}

TEST_F(PoolHostsTest, AHostThatRunsIsNotFencedNorDataLetGo) {
  server().On("GET " + kPool, Pool("True"));
  const auto ready = Run({"pool", "fence", "alpha", "--yes"});
  EXPECT_EQ(ready.code, 2);
  EXPECT_NE(ready.err.find("is ready"), std::string::npos) << ready.err;
  const auto data = Run({"pool", "fence", "volumepool/disks", "--yes"});
  EXPECT_EQ(data.code, 2);
  EXPECT_NE(data.err.find("holds data"), std::string::npos) << data.err;
  EXPECT_TRUE(Changes().empty());
}

TEST_F(PoolHostsTest, IsolateRevokesTheHostAndNamesItsSecrets) {
  server().On("GET " + kPool, Pool("False"));
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha",
              List(Pool("False")));
  server().On("GET " + kStorage + "/namespaces/shop/volumes/data", kVolume);
  server().On("PATCH " + kRecords + "/revoked-hosts?fieldManager=berth", "{}");
  const auto ended = Run({"pool", "isolate", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_EQ(ended.out,
            "machinepool.compute.ironcore.dev/alpha already cordoned\n"
            "host rack: its certificate is revoked\n"
            "machinepool.compute.ironcore.dev/alpha isolated\n"
            "the host had been sent these secrets; put new ones in their place:\n"
            "NAMESPACE   SECRET     FOR\n"
            "shop        boot       machine.compute.ironcore.dev/web\n"
            "shop        ceph       volume.storage.ironcore.dev/data\n"
            "shop        disk-key   volume.storage.ironcore.dev/data\n");
  EXPECT_EQ(server().Last("PATCH").body, R"({"data":{"host.rack":"2023-11-14T22:13:20Z"}})");
  EXPECT_EQ(Changes().size(), 1U) << "what is bound stays bound";
}

TEST_F(PoolHostsTest, IsolateNamesPullSecretsAndThoseOfEphemeralVolumes) {
  const std::string machine =
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":"web",)"
      R"("namespace":"shop","uid":"m-1"},"spec":{"imagePullSecretRef":{"name":"registry"},)"
      R"("volumes":[{"name":"made","ephemeral":{}},{"name":"root","localDisk":{}}]}})";
  const std::string volume =
      R"({"apiVersion":"storage.ironcore.dev/v1alpha1","kind":"Volume","metadata":{"name":"image",)"
      R"("namespace":"shop"},"spec":{"imagePullSecretRef":{"name":"mirror"}}})";
  server().On("GET " + kPool, Pool("False"));
  Instead("GET " + kStorage + "/volumepools?limit=500", List(kDisks));
  Instead("GET " + kOnPool, List(machine));
  Instead("GET " + kOnDisks, List(volume));
  server().On("GET " + kStorage + "/namespaces/shop/volumes/web-made", kVolume);
  const auto ended = Run({"pool", "isolate", "alpha", "--dry-run"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  const std::string head = "put new ones in their place:\n";
  ASSERT_NE(ended.out.find(head), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.substr(ended.out.find(head) + head.size()),
            "NAMESPACE   SECRET     FOR\n"
            "shop        ceph       volume.storage.ironcore.dev/data\n"
            "shop        disk-key   volume.storage.ironcore.dev/data\n"
            "shop        mirror     volume.storage.ironcore.dev/image\n"
            "shop        registry   machine.compute.ironcore.dev/web\n");
}

TEST_F(PoolHostsTest, TheFirstRevocationMakesItsRecord) {
  server().On("GET " + kPool, Pool("False"));
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha",
              List(Pool("False")));
  Instead("GET " + kOnPool, List(""));
  server().On("POST " + kRecords + "?fieldManager=berth", "{}", 201);
  const auto ended = Run({"pool", "isolate", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  const auto body = meta::ParseJson(server().Last("POST").body);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body->GetString({"metadata", "name"}), "revoked-hosts");
  EXPECT_NE(ended.out.find("no secrets"), std::string::npos) << ended.out;
}

TEST_F(PoolHostsTest, P4_2_RemoveEmptiesThenRevokesThenDeletes) {
  server().On("GET " + kPool, Pool("False"));
  server().answers["GET " + kOnPool] = {{.status = 200, .body = List(kMachine), .headers = {}},
                                        {.status = 200, .body = List(kMachine), .headers = {}},
                                        {.status = 200, .body = List(""), .headers = {}}};
  server().On("DELETE " + kCompute + "/namespaces/shop/machines/web/binding", "{}");
  server().On("PATCH " + kPool + "?fieldManager=berth", Pool("False"));
  server().On("PATCH " + kRecords + "/revoked-hosts?fieldManager=berth", "{}");
  server().On("DELETE " + kRecords + "/host-rack", "{}");
  server().On("DELETE " + kPool, Pool("False"));
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha", List(""));
  const auto ended = Run({"pool", "remove", "alpha", "--fence", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_EQ(
      Changes(),
      (std::vector<std::string>{"PATCH " + kPool + "?fieldManager=berth",
                                "DELETE " + kCompute + "/namespaces/shop/machines/web/binding",
                                "PATCH " + kRecords + "/revoked-hosts?fieldManager=berth",
                                "DELETE " + kRecords + "/host-rack",
                                "DELETE " + kPool}));
  EXPECT_TRUE(ended.out.ends_with("machinepool.compute.ironcore.dev/alpha removed\n")) << ended.out;
}

TEST_F(PoolHostsTest, P4_2_APoolOfTheApiModeIsRemovedWithTheIdentityOfItsPoollet) {
  const std::string other = "compute.OpenKCM.dev/v1alpha1";
  ServeKinds("/apis/" + other, other, "machine", "Machine");
  const std::string binding =
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth:legacy-poollet:machinepool:"
      "alpha";
  server().On("GET " + kPool, kLegacyPool);
  server().On("GET " + kNaming, List(""));
  server().On("PATCH " + kRecords + "/revoked-users?fieldManager=berth", "{}");
  server().On("DELETE " + binding, "{}");
  server().On("DELETE " + kPool, kLegacyPool);
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha", List(""));
  const auto asked = Run({"pool", "remove", "alpha"});
  EXPECT_NE(asked.err.find("comes back only with a new certificate"), std::string::npos)
      << asked.err;
  EXPECT_EQ(asked.err.find("token"), std::string::npos) << asked.err;
  EXPECT_TRUE(Changes().empty());
  const auto ended = Run({"pool", "remove", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  const std::string patch = "PATCH " + kRecords + "/revoked-users?fieldManager=berth";
  EXPECT_EQ(
      Changes(),
      (std::vector<std::string>{patch, patch, patch, "DELETE " + binding, "DELETE " + kPool}));
  std::vector<std::string> entered;
  for (const auto& one : server().asked) {
    if (one.line == patch) entered.push_back(one.body);
  }
  std::vector<std::string> expected;
  for (const char* group : {"compute.OpenKCM.dev", "compute.ironcore.dev", "compute.openkcm.dev"}) {
    expected.push_back(R"({"data":{"userhex.)" +
                       HexEncode(std::string(group) + ":system:machinepool:alpha") +
                       R"(":"2023-11-14T22:13:20Z"}})");
  }
  EXPECT_EQ(entered, expected) << "every name that the server takes for the pool's";
  EXPECT_NE(ended.out.find("alpha: the certificates of its poollet are revoked\n"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("alpha: its wide rights are taken back\n"), std::string::npos);
}

TEST_F(PoolHostsTest, AHostIsRemovedAsAWholeAndNotWithDataOnIt) {
  server().On("GET " + kPool, Pool("False"));
  Instead("GET " + kStorage + "/volumepools?limit=500", List(kDisks));
  const auto half = Run({"pool", "remove", "alpha", "--yes"});
  EXPECT_EQ(half.code, 2);
  EXPECT_NE(half.err.find("also runs volumepool.storage.ironcore.dev/disks"), std::string::npos)
      << half.err;
  Instead("GET " + kOnDisks, List(kVolume));
  const auto data = Run({"pool", "remove", "alpha", "volumepool/disks", "--yes"});
  EXPECT_EQ(data.code, 2);
  EXPECT_NE(data.err.find("holds 1 volumes: shop/data"), std::string::npos) << data.err;
  EXPECT_TRUE(Changes().empty());
}

TEST_F(PoolHostsTest, P4_3_PurgeCondemnsByNameAndWaitsForTheHost) {
  server().On("GET " + kPool, Pool("True"));
  EXPECT_EQ(Run({"pool", "purge", "alpha"}).code, 2) << "nothing is named";
  EXPECT_EQ(Run({"pool", "purge", "alpha", "a,b", "--yes"}).code, 2);
  const auto asked = Run({"pool", "purge", "alpha", "--all"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("Machine a/b (o-1)"), std::string::npos) << asked.err;
  EXPECT_NE(asked.err.find("cannot be undone"), std::string::npos) << asked.err;
  EXPECT_TRUE(Changes().empty());
  server().On("PATCH " + kPool + "?fieldManager=berth", Pool("True"));
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha",
              List(Pool("True")));
  const auto ended = Run({"pool", "purge", "alpha", "o-1", "o-2", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/purge-orphans":"o-1,o-2"}}})");
}

// More on the host than the server lists: some of it may be this pool's.
TEST_F(PoolHostsTest, P4_3_PurgeOfAPoolWhoseOrphansNobodyCountsCondemnsThem) {
  const std::string unknown =
      R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachinePool","metadata":)"
      R"({"name":"alpha","uid":"u-1"},"status":{"agent":{"mode":"Session"},"conditions":[)"
      R"({"type":"Orphans","status":"Unknown","reason":"ListCut","message":"1024 or more"}]}})";
  server().On("GET " + kPool, unknown);
  const auto dry = Run({"pool", "purge", "alpha", "--all", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_EQ(dry.out,
            "machinepool.compute.ironcore.dev/alpha: 1024 or more; all of it that is of this pool "
            "would be destroyed, once it is listed\n");
  const auto asked = Run({"pool", "purge", "alpha", "--all"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("once it is listed"), std::string::npos) << asked.err;
  EXPECT_NE(asked.err.find("cannot be undone"), std::string::npos) << asked.err;
  EXPECT_TRUE(Changes().empty());
  server().On("PATCH " + kPool + "?fieldManager=berth", unknown);
  server().On("GET " + kCompute + "/machinepools?fieldSelector=metadata.name%3Dalpha",
              List(unknown));
  const auto ended = Run({"pool", "purge", "alpha", "--all", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/purge-orphans":"*"}}})");
}

TEST_F(PoolHostsTest, P4_3_PurgeOfAPoolWithoutOrphansChangesNothing) {
  server().On("GET " + kPool, kLegacyPool);
  EXPECT_EQ(Run({"pool", "purge", "alpha", "--all", "--yes"}).out,
            "machinepool.compute.ironcore.dev/alpha has nothing that the server does not know\n");
  EXPECT_TRUE(Changes().empty());
}

TEST_F(PoolHostsTest, P5_4_AllowLegacyBindsOneIdentityAndCanBeTakenBack) {
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  server().On("GET " + kPool, kLegacyPool);
  const auto asked = Run({"pool", "allow-legacy", "alpha"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("SECRETS of every namespace"), std::string::npos) << asked.err;
  EXPECT_TRUE(Changes().empty());
  server().On("POST " + bindings, "{}", 201);
  server().On("PATCH " + kPool + "?fieldManager=berth", kLegacyPool);
  const auto ended = Run({"pool", "allow-legacy", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto binding = meta::ParseJson(server().Last("POST").body);
  ASSERT_TRUE(binding.ok());
  EXPECT_EQ(binding->Find("subjects")->items()[0].GetString({"name"}),
            "compute.ironcore.dev:system:machinepool:alpha");
  EXPECT_EQ(binding->GetString({"roleRef", "name"}), "berth:legacy-poollet");
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/legacy-access":"true"}}})");
  server().On("DELETE " + bindings + "/berth:legacy-poollet:machinepool:alpha", "{}");
  EXPECT_EQ(Run({"pool", "allow-legacy", "alpha", "--withdraw"}).code, 0);
  EXPECT_EQ(server().Last("PATCH").body,
            R"({"metadata":{"annotations":{"berth.dev/legacy-access":null}}})");
}

TEST_F(PoolHostsTest, P5_4_APoolOfASessionGetsNoLegacyRights) {
  server().On("GET " + kPool, Pool("True"));
  const auto ended = Run({"pool", "allow-legacy", "alpha", "--yes"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("speaks in a session"), std::string::npos) << ended.err;
  EXPECT_TRUE(Changes().empty());
}

TEST_F(PoolHostsTest, P5_4_TheDoctorWarnsOfLegacyRights) {
  server().On(
      "GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector="
      "berth.dev%2Flegacy-pool",
      List(R"({"subjects":[{"kind":"User","name":"compute.ironcore.dev:system:machinepool:a"}]})"));
  const auto ended = Run({"doctor"});
  EXPECT_NE(ended.out.find("warn  legacy poollets   may read every secret: "
                           "compute.ironcore.dev:system:machinepool:a"),
            std::string::npos)
      << ended.out;
}

}  // namespace
}  // namespace berth::cli
