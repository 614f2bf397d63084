// SPDX-License-Identifier: Apache-2.0
// Defends: what users point at is found, manifests are read whole, watches lose and repeat nothing,
// and waiting ends.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/api/discovery.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/manifest.h"
#include "cli/objects/patience.h"
#include "cli/objects/targets.h"
#include "cli/objects/watcher.h"
#include "cli/testing/fake_transport.h"

namespace berth::cli {
namespace {

class ObjectsTest : public testing::Test {
 protected:
  ObjectsTest() : api_(server_.Connect(), err_, Verbosity::kQuiet), discovery_(api_) {
    server_.ServeDiscovery();
    environment_.err = &err_;
    environment_.now = [this] { return now_; };
  }

  std::string Targets(const std::vector<std::string>& words) {
    const auto targets = FindTargets(discovery_, words);
    if (!targets.ok()) return FailureOf(targets.status()).message;
    std::string out;
    for (const Target& target : *targets) out += target.resource.plural + "/" + target.name + " ";
    return out;
  }

  FakeServer server_;
  std::ostringstream err_;
  Environment environment_;
  Time now_;
  Api api_;
  Discovery discovery_;
};

TEST_F(ObjectsTest, UnderstandsEveryWayToPointAtObjects) {
  EXPECT_EQ(Targets({"machines"}), "machines/ ");
  EXPECT_EQ(Targets({"machine", "web", "db"}), "machines/web machines/db ");
  EXPECT_EQ(Targets({"machines,vol"}), "machines/ volumes/ ");
  EXPECT_EQ(Targets({"machine/web", "vol/data"}), "machines/web volumes/data ");
  EXPECT_EQ(Targets({"all"}), "machines/ volumes/ ");
  EXPECT_EQ(Targets({"Classes,vol"}), "machineclasses/ volumes/ ");
}

TEST_F(ObjectsTest, RefusesWhatHasTwoMeanings) {
  EXPECT_EQ(Targets({"machine/web", "volumes"}),
            R"("volumes": KIND/NAME and KIND NAME cannot be mixed)");
  EXPECT_EQ(Targets({"machines,volumes", "web"}), "names belong to one kind");
  EXPECT_EQ(Targets({"machine/a/b"}), R"("machine/a/b" is not KIND/NAME)");
  EXPECT_EQ(Targets({"/web"}), R"("/web" is not KIND/NAME)");
}

TEST_F(ObjectsTest, ReadsDocumentsAndTakesListsApart) {
  const auto manifests = ParseManifests(
      "# only a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"
      "- {apiVersion: v1, kind: Secret, metadata: {generateName: c-}}\n",
      "x.yaml");
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_EQ(manifests->size(), 3U);
  EXPECT_EQ((*manifests)[0].object.GetString({"metadata", "name"}), "a");
  EXPECT_EQ((*manifests)[2].source, "x.yaml, document 2, item 2");
}

TEST_F(ObjectsTest, NamesTheDocumentThatIsNoObject) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"apiVersion: v1\nkind: Secret\n", "x.yaml: Secret: metadata.name is missing"},
      {"kind: Secret\nmetadata: {name: a}\n", "x.yaml: apiVersion is missing"},
      {"apiVersion: v1\nmetadata: {name: a}\n", "x.yaml: kind is missing"},
      {"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n- 1\n",
       "x.yaml, document 2: not an object"},
  };
  for (const auto& [text, message] : cases) {
    const auto manifests = ParseManifests(text, "x.yaml");
    ASSERT_FALSE(manifests.ok()) << text;
    EXPECT_EQ(manifests.status().message(), message);
    EXPECT_EQ(ExitCodeOf(manifests.status()), ExitCode::kUsage);
  }
}

// Five lines per document, half a MiB more than a request may have.
std::string ManyMegabytes(int documents) {
  const std::string filler(7 * 512 * 1024 / documents, 'x');
  std::string text;
  for (int i = 0; i < documents; ++i) {
    text += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s" + std::to_string(i) +
            "}\nfiller: " + filler + "\n";
  }
  return text;
}

TEST_F(ObjectsTest, ReadsManifestsOfManyMegabytes) {
  constexpr int kCount = 20;
  const std::string text = ManyMegabytes(kCount);
  const auto manifests = ParseManifests(text, "x.yaml");
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_EQ(manifests->size(), static_cast<size_t>(kCount));
  EXPECT_EQ(manifests->back().object.GetString({"metadata", "name"}), "s19");
  EXPECT_EQ(manifests->back().source, "x.yaml, document 20");
}

TEST_F(ObjectsTest, NamesTheLineOfAMistakeFarIntoAManifest) {
  const auto broken = ParseManifests(ManyMegabytes(20) + "---\na: ]\n", "x.yaml");
  ASSERT_FALSE(broken.ok());
  // Of 20 documents with five lines each, "---", and then the mistake.
  EXPECT_TRUE(broken.status().message().starts_with("x.yaml: invalid YAML at line 102, column"))
      << broken.status();
}

TEST_F(ObjectsTest, ReadsListsOfManyMegabytesAsYamlAndJson) {
  constexpr int kCount = 20;
  const std::string filler(7 * 512 * 1024 / kCount, 'x');
  std::string yaml = "apiVersion: v1\nkind: List\nitems:\n";
  std::string json = R"({"apiVersion": "v1", "kind": "List", "items": [)";
  for (int i = 0; i < kCount; ++i) {
    const std::string item = R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s)" +
                             std::to_string(i) + R"("}, "filler": ")" + filler + "\"}";
    yaml += "- " + item + "\n";
    json += (i == 0 ? "" : ",") + item;
  }
  for (const std::string& text : {yaml, json + "]}"}) {
    const auto manifests = ParseManifests(text, "x");
    ASSERT_TRUE(manifests.ok()) << manifests.status();
    ASSERT_EQ(manifests->size(), static_cast<size_t>(kCount));
    EXPECT_EQ(manifests->back().source, "x, item 20");
  }
}

TEST_F(ObjectsTest, ReadsFoldersInOrderAndStandardInput) {
  const std::string folder = testing::TempDir() + "objects_test_folder";
  std::filesystem::create_directories(folder + "/below");
  const auto write = [](const std::string& path, const std::string& name) {
    std::ofstream(path) << "{apiVersion: v1, kind: Secret, metadata: {name: " << name << "}}";
  };
  write(folder + "/b.yml", "b");
  write(folder + "/a.yaml", "a");
  write(folder + "/ignored.txt", "no");
  write(folder + "/below/c.json", "c");
  std::istringstream in(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}})");
  const auto names = [](const Result<std::vector<Manifest>>& manifests) {
    std::string out;
    if (!manifests.ok()) return manifests.status().ToString();
    for (const Manifest& one : *manifests) out += one.object.GetString({"metadata", "name"});
    return out;
  };
  EXPECT_EQ(names(ReadManifests({folder, "-"}, Folders::kTopLevel, in)), "abd");
  EXPECT_EQ(names(ReadManifests({folder}, Folders::kRecursive, in)), "abc");
  EXPECT_FALSE(ReadManifests({"https://example.com/x.yaml"}, Folders::kTopLevel, in).ok());
  EXPECT_TRUE(
      ReadManifests({folder + "/none"}, Folders::kTopLevel, in).status().Is(Reason::kNotFound));
  std::filesystem::remove_all(folder);
}

TEST_F(ObjectsTest, ListsPageByPageAndStartsAnewWhenAPageHasExpired) {
  const Resource machines = *discovery_.FindByWord("machines");
  const std::string path = "GET /apis/compute.ironcore.dev/v1alpha1/namespaces/a/machines";
  server_.On(
      path + "?labelSelector=app%3Dx&limit=500",
      R"({"metadata":{"continue":"t","resourceVersion":"5"},"items":[{"metadata":{"name":"a"}}]})");
  server_.On(path + "?labelSelector=app%3Dx&limit=500&continue=t",
             StatusBody(410, "Expired", "too old"),
             410);
  server_.On(
      path + "?labelSelector=app%3Dx",
      R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  const auto list = FetchList(api_, machines, {.namespace_ = "a", .label_selector = "app=x"});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->items[1].GetString({"kind"}), "Machine");
  EXPECT_EQ(list->items[1].GetString({"apiVersion"}), "compute.ironcore.dev/v1alpha1");
}

TEST_F(ObjectsTest, CutsAStreamIntoEventsWhereverTheChunksEnd) {
  server_.watches["/l?watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
      .chunks = {R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"6"}}})"
                 "\n{\"type\":\"BOOK",
                 "MARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}\n",
                 ""},
      .ends = true};
  server_.watches["/l?watch=true&allowWatchBookmarks=true&resourceVersion=8"] = {
      .chunks = {R"({"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"9"}}})"
                 "\n"},
      .ends = false};
  auto watcher = Watcher::Start(api_, {{.path = "/l", .query = {}, .resource_version = "5"}});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  const auto first = watcher->Next(std::nullopt);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->type, "ADDED");
  // The stream ended after a bookmark: the next one begins there.
  const auto second = watcher->Next(std::nullopt);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->type, "DELETED");
  EXPECT_TRUE(watcher->Next(Duration::Seconds(1)).status().Is(Reason::kTimeout));
}

TEST_F(ObjectsTest, WhoHasALimitLooksAtTheClockBetweenBookmarks) {
  server_.watches["/l?watch=true&allowWatchBookmarks=true"] = {
      .chunks = {R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}})"
                 "\n",
                 R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"9"}}})"
                 "\n"}};
  auto watcher = Watcher::Start(api_, {{.path = "/l", .query = {}}});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_TRUE(watcher->Next(Duration::Seconds(1)).status().Is(Reason::kTimeout));
  EXPECT_TRUE(watcher->Next(Duration::Seconds(1)).ok());
}

TEST_F(ObjectsTest, AnErrorEventEndsTheWatchWithItsReason) {
  server_.watches["/l?watch=true&allowWatchBookmarks=true"] = {
      .chunks = {"{\"type\":\"ERROR\",\"object\":" + StatusBody(410, "Expired", "too old") +
                 "}\n"}};
  auto watcher = Watcher::Start(api_, {{.path = "/l", .query = {}}});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_TRUE(watcher->Next(std::nullopt).status().Is(Reason::kExpired));
}

TEST_F(ObjectsTest, AServerThatEndsEveryWatchAtOnceIsNotAskedForEver) {
  server_.watches["/l?watch=true&allowWatchBookmarks=true"] = {.chunks = {}, .ends = true};
  auto watcher = Watcher::Start(api_, {{.path = "/l", .query = {}}});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_TRUE(watcher->Next(std::nullopt).status().Is(Reason::kUnavailable));
}

class PatienceTest : public ObjectsTest {
 protected:
  PatienceTest() : machine_{*discovery_.FindByWord("machines"), "a", "web"} {}

  void Serve(const std::string& items, std::vector<std::string> chunks) {
    const std::string path =
        "/apis/compute.ironcore.dev/v1alpha1/namespaces/a/"
        "machines?fieldSelector=metadata.name%3Dweb";
    server_.On("GET " + path, R"({"metadata":{"resourceVersion":"5"},"items":[)" + items + "]}");
    server_.watches[path + "&watch=true&allowWatchBookmarks=true&resourceVersion=5"] = {
        .chunks = std::move(chunks)};
  }

  ObjectAddress machine_;
};

TEST_F(PatienceTest, IsOverAtOnceIfTheObjectIsGone) {
  Serve("", {});
  EXPECT_TRUE(AwaitGone(api_, machine_, "", Patience(environment_, Duration())).ok());
}

TEST_F(PatienceTest, ANamesakeOfADeletedObjectDoesNotCount) {
  Serve(R"({"metadata":{"name":"web","uid":"new"}})", {});
  EXPECT_TRUE(AwaitGone(api_, machine_, "old", Patience(environment_, Duration())).ok());
}

TEST_F(PatienceTest, EndsWithTheDeletion) {
  Serve(R"({"metadata":{"name":"web","uid":"u"}})",
        {R"({"type":"MODIFIED","object":{"metadata":{"name":"web","uid":"u"}}})"
         "\n",
         R"({"type":"DELETED","object":{"metadata":{"name":"web","uid":"u"}}})"
         "\n"});
  EXPECT_TRUE(AwaitGone(api_, machine_, "u", Patience(environment_, Duration())).ok());
}

TEST_F(PatienceTest, RunsOutWithTheObjectAndTheReason) {
  Serve(R"({"metadata":{"name":"web","uid":"u"}})", {});
  environment_.now = [this] {
    now_ = now_ + Duration::Seconds(1);
    return now_;
  };
  const Status status =
      AwaitGone(api_, machine_, "u", Patience(environment_, Duration::Seconds(3)));
  EXPECT_EQ(FailureOf(status).message,
            "timed out waiting for deletion of machine.compute.ironcore.dev/web");
  EXPECT_EQ(FailureOf(status).next_step, "berth describe machine web");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailed);
}

TEST_F(ObjectsTest, OneFailureIsReportedAtTheEndSeveralAsTheyCome) {
  Failures one(environment_);
  one.Add(NotFound("a"));
  EXPECT_EQ(one.Outcome(), NotFound("a"));
  EXPECT_EQ(err_.str(), "");
  Failures two(environment_);
  two.Add(NotFound("a"));
  two.Add(NotFound("b"));
  EXPECT_EQ(err_.str(), "error: a\nerror: b\n");
  EXPECT_EQ(ExitCodeOf(two.Outcome()), ExitCode::kNotFound);
  two.Add(Conflict("c"));
  EXPECT_EQ(ExitCodeOf(two.Outcome()), ExitCode::kFailed);
  EXPECT_TRUE(IsQuiet(two.Outcome()));
}

}  // namespace
}  // namespace berth::cli
