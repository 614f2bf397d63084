// SPDX-License-Identifier: Apache-2.0
// Defends lists: pages of one list show one state, resourceVersion means what Kubernetes says, and
// what is compacted says so, also where this server was cut off while others went on.
#include "apiserver/registry/reads.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/config_map.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/continue_token.h"
#include "apiserver/registry/registry_world.h"

namespace berth::apiserver {
namespace {

using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;

class ReadsTest : public ::testing::Test {
 protected:
  ReadsTest() {
    world_.MakeNamespace("default");
    world_.MakeNamespace("other");
  }

  std::string Make(const std::string& name,
                   const std::string& tier = "",
                   const std::string& namespace_ = "default") {
    ConfigMap map;
    map.metadata.namespace_ = namespace_;
    map.metadata.name = name;
    if (!tier.empty()) map.metadata.labels["tier"] = tier;
    auto made =
        world_.Run(world_.client().Create(meta::Object::Of(kConfigMapKind, std::move(map)), {}));
    CHECK(made.ok()) << made.status();
    return made->metadata().resource_version;
  }
  void Remove(const std::string& name) {
    CHECK(world_.Run(world_.client().Delete(kConfigMapKind, {"default", name}, {})).ok());
  }
  Result<ListPage> List(ListRequest request) {
    return world_.Run(world_.registry().List(kConfigMapKind, std::move(request)));
  }
  static std::vector<std::string> Names(const ListPage& page) {
    std::vector<std::string> names;
    for (const StoredObject& item : page.items) {
      names.push_back(DecodeFor(kConfigMapKind, item)->metadata().name);
    }
    return names;
  }
  using Strings = std::vector<std::string>;
  // As another server of the store does it.
  store::Revision Commit(store::Op op) {
    store::Txn txn;
    txn.ops.push_back(std::move(op));
    return world_.Run(other_->Commit(std::move(txn)))->revision;
  }

  RegistryWorld world_{5};
  std::unique_ptr<store::Store> other_ = world_.NewHandle();
};

TEST_F(ReadsTest, PagesOfOneListShowOneState) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Make(name);
  ListRequest request;
  request.limit = 2;
  auto page = *List(request);
  EXPECT_EQ(Names(page), (Strings{"a", "b"}));
  EXPECT_EQ(page.remaining, 3);
  const store::Revision revision = page.revision;
  Remove("c");
  Make("bb");
  request.continue_token = page.continue_token;
  page = *List(request);
  EXPECT_EQ(Names(page), (Strings{"c", "d"}));
  EXPECT_EQ(page.revision, revision);
  EXPECT_EQ(page.remaining, 1);
  request.continue_token = page.continue_token;
  page = *List(request);
  EXPECT_EQ(Names(page), (Strings{"e"}));
  EXPECT_EQ(page.continue_token, "");
  EXPECT_FALSE(page.remaining.has_value());
}

TEST_F(ReadsTest, SelectorsAndNamespacesCutAList) {
  Make("a", "web");
  Make("b", "db");
  Make("c", "web");
  Make("a", "web", "other");
  ListRequest request;
  request.selection.namespace_ = "default";
  request.selection.labels = *meta::Selector::Parse("tier=web");
  EXPECT_EQ(Names(*List(request)), (Strings{"a", "c"}));
  request.limit = 1;
  auto page = *List(request);
  EXPECT_EQ(Names(page), (Strings{"a"}));
  EXPECT_FALSE(page.remaining.has_value()) << "with a selector it is not known";
  request.continue_token = page.continue_token;
  Make("d", "web");
  page = *List(request);
  EXPECT_EQ(Names(page), (Strings{"c"}));
  EXPECT_EQ(page.continue_token, "");
}

TEST_F(ReadsTest, AContinueTokenWhoseStateIsCompactedExpires) {
  for (const char* name : {"a", "b", "c"}) Make(name);
  ListRequest request;
  request.limit = 1;
  const auto page = *List(request);
  Make("d");
  const auto now = *world_.Run(world_.store().CurrentRevision());
  ASSERT_TRUE(world_.Run(world_.store().Compact(now)).ok());
  request.continue_token = page.continue_token;
  const Status status = List(request).status();
  EXPECT_EQ(status.reason(), Reason::kExpired);
  EXPECT_TRUE(status.message().starts_with("the state that this list began with is compacted"));
}

TEST_F(ReadsTest, TheRestOfACompactedListIsOfThePresent) {
  for (const char* name : {"a", "b", "c", "e"}) Make(name);
  ListRequest request;
  request.limit = 1;
  const auto first = *List(request);
  Remove("b");
  Make("d");
  const auto now = *world_.Run(world_.store().CurrentRevision());
  ASSERT_TRUE(world_.Run(world_.store().Compact(now)).ok());
  request.limit = 2;
  request.continue_token = *TokenOfThePresent(first.continue_token);
  const auto second = *List(request);
  EXPECT_EQ(Names(second), (Strings{"c", "d"}));
  EXPECT_EQ(second.revision, now);
  request.continue_token = second.continue_token;
  Make("f");
  EXPECT_EQ(Names(*List(request)), (Strings{"e"})) << "of one state again";
  EXPECT_TRUE(TokenOfThePresent("nonsense").status().Is(Reason::kBadRequest));
}

TEST_F(ReadsTest, ResourceVersionMatchExactShowsThePast) {
  const std::string then = Make("a");
  Make("b");
  ListRequest request;
  request.resource_version = then;
  request.resource_version_match = "Exact";
  auto page = *List(request);
  EXPECT_EQ(Names(page), Strings{"a"});
  EXPECT_EQ(std::to_string(page.revision.value), then);
  request.resource_version_match = "NotOlderThan";
  EXPECT_EQ(Names(*List(request)), (Strings{"a", "b"}));
}

// A revision and a token of another server, from a time that this one missed.
TEST_F(ReadsTest, AStateThatWasMissedIsNotTakenForThePresent) {
  for (const char* name : {"a", "b", "c"}) Make(name);
  const auto wait = [&](store::Revision revision) {
    return world_.Run(world_.cache().WaitFor(revision));
  };
  world_.SetFaults({.refuse = 1, .end_watch = 1});
  ASSERT_TRUE(wait(Commit(store::Op::Put("last", Bytes("on its way")))).ok());
  const store::Revision then = Commit(store::Op::Put("elsewhere", Bytes("x")));
  Commit(store::Op::Delete(StoreKey(kConfigMapKind, {"default", "b"})));
  const store::Revision now = Commit(store::Op::Put("elsewhere", Bytes("y")));
  world_.SetFaults({.end_watch = 1});
  ASSERT_TRUE(wait(now).ok());
  world_.SetFaults({});

  ListRequest exact;
  exact.resource_version = FormatResourceVersion(then);
  exact.resource_version_match = "Exact";
  ListRequest rest;
  rest.continue_token = ContinueToken{.revision = then, .after = "default/a"}.Encode();
  EXPECT_EQ(Names(*List(exact)), (Strings{"a", "b", "c"}));
  EXPECT_EQ(Names(*List(rest)), (Strings{"b", "c"}));
  ASSERT_TRUE(world_.Run(other_->Compact(now)).ok());
  EXPECT_EQ(List(exact).status().reason(), Reason::kExpired);
  EXPECT_EQ(List(rest).status().reason(), Reason::kExpired);
  exact.resource_version = FormatResourceVersion(now);
  EXPECT_EQ(Names(*List(exact)), (Strings{"a", "c"}));
}

// It is told again by a rebuild, and was written long before.
TEST_F(ReadsTest, WhatCannotBeReadMakesNoOldStateOfTheLatest) {
  Commit(store::Op::Put(StoreKey(kConfigMapKind, {"default", "noise"}), Bytes("noise")));
  Make("a");
  const store::Revision then = Commit(store::Op::Put("elsewhere", Bytes("x")));
  Make("b");
  world_.SetFaults({.refuse = 1, .end_watch = 1});
  ASSERT_TRUE(
      world_.Run(world_.cache().WaitFor(Commit(store::Op::Put("last", Bytes("on its way"))))).ok());
  const store::Revision now = Commit(store::Op::Put("elsewhere", Bytes("y")));
  ASSERT_TRUE(world_.Run(other_->Compact(now)).ok());
  world_.SetFaults({});
  ASSERT_TRUE(world_.Run(world_.cache().WaitFor(now)).ok());

  ListRequest exact;
  exact.resource_version = FormatResourceVersion(then);
  exact.resource_version_match = "Exact";
  EXPECT_EQ(List(exact).status().reason(), Reason::kExpired);
  EXPECT_EQ(Names(*List({})), (Strings{"a", "b"}));
}

TEST_F(ReadsTest, AFutureResourceVersionTimesOut) {
  ListRequest request;
  request.resource_version = "100000";
  const Status status = List(request).status();
  EXPECT_EQ(status.reason(), Reason::kTimeout);
  EXPECT_TRUE(status.message().starts_with("Too large resource version: 100000, current: "));
}

TEST_F(ReadsTest, BadParametersAreBadRequests) {
  struct Row {
    const char* what;
    ListRequest request;
    Reason reason = Reason::kBadRequest;
  };
  ListRequest garbage;
  garbage.continue_token = "garbage!";
  ListRequest word;
  word.resource_version = "soon";
  ListRequest match;
  match.resource_version_match = "Exact";
  ListRequest unknown;
  unknown.resource_version = "1";
  unknown.resource_version_match = "Roughly";
  ListRequest both;
  both.continue_token = ContinueToken{.revision = {3}, .after = "default/a"}.Encode();
  both.resource_version = "3";
  ListRequest zero;
  zero.resource_version = "0";
  zero.resource_version_match = "Exact";
  for (const Row& row : {Row{"garbage", garbage},
                         Row{"word", word},
                         Row{"match", match, Reason::kInvalid},
                         Row{"unknown", unknown, Reason::kInvalid},
                         Row{"both", both},
                         Row{"zero", zero, Reason::kInvalid}}) {
    EXPECT_EQ(List(row.request).status().reason(), row.reason) << row.what;
  }
}

// A token is only text: whoever may read one namespace must not come to another by writing one.
TEST_F(ReadsTest, AContinueOutsideTheNamespaceIsRefusedAndShowsNothing) {
  world_.MakeNamespace("zzz");
  Make("foreign");
  Make("foreign", "", "other");
  Make("own", "", "zzz");
  const store::Revision then = List({})->revision;
  Make("newer", "", "zzz");  // so that the state that is asked for is of the past
  const store::Revision now = List({})->revision;
  for (const char* after :
       {"a", "default/a", "other/foreign", "zzz", "zzz.", "zzzz/own", "~", "\xff"}) {
    for (const store::Revision revision : {then, now, store::Revision{}}) {
      ListRequest request;
      request.selection.namespace_ = "zzz";
      request.continue_token = ContinueToken{.revision = revision, .after = after}.Encode();
      const auto page = List(request);
      ASSERT_FALSE(page.ok()) << after << " at " << revision.value << ": " << page->items.size();
      EXPECT_TRUE(page.status().Is(Reason::kBadRequest)) << page.status();
      EXPECT_NE(page.status().message().find("namespace \"zzz\""), std::string::npos);
    }
  }
  ListRequest inside;
  inside.selection.namespace_ = "zzz";
  inside.continue_token = ContinueToken{.revision = then, .after = "zzz/a"}.Encode();
  EXPECT_EQ(Names(*List(inside)), Strings{"own"});
  inside.selection.namespace_.clear();
  inside.continue_token = ContinueToken{.revision = then, .after = "default/z"}.Encode();
  EXPECT_EQ(Names(*List(inside)), (Strings{"foreign", "own"})) << "of all namespaces";
}

TEST_F(ReadsTest, ACollectionIsNeverDeletedOutsideItsNamespace) {
  world_.MakeNamespace("zzz");
  Make("foreign");
  Make("own", "", "zzz");
  const store::Revision then = List({})->revision;
  Make("newer", "", "zzz");
  ListRequest which;
  which.selection.namespace_ = "zzz";
  which.continue_token = ContinueToken{.revision = then, .after = "a"}.Encode();
  const auto deleted =
      world_.Run(world_.registry().DeleteCollection(kConfigMapKind, which, {}, {}));
  EXPECT_TRUE(deleted.status().Is(Reason::kBadRequest)) << deleted.status();
  EXPECT_EQ(Names(*List({})), (Strings{"foreign", "newer", "own"}));
}

TEST(ContinueToken, ComesBackAsItWasMade) {
  const ContinueToken token{.revision = {42}, .after = "default/web?~1"};
  const auto decoded = ContinueToken::Decode(token.Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->revision, token.revision);
  EXPECT_EQ(decoded->after, token.after);
  for (const char* bad : {"", "AAAA", "MQ==", "MTpxOmE=", "MTo1Og==", "MTotMTph"}) {
    EXPECT_EQ(ContinueToken::Decode(bad).status().reason(), Reason::kBadRequest) << bad;
  }
}

}  // namespace
}  // namespace berth::apiserver
