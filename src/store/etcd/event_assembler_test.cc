// SPDX-License-Identifier: Apache-2.0
// A watch shows whole transactions in order or says that it cannot.
#include "store/etcd/event_assembler.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "store/etcd/wire.h"

namespace berth::store {
namespace {

struct Change {
  int64_t revision;
  std::string key;
};

pb::WatchResponse Response(const std::vector<Change>& changes, bool fragment = false) {
  pb::WatchResponse response;
  for (const Change& change : changes) {
    pb::Event* event = response.add_events();
    event->mutable_kv()->set_key(change.key);
    event->mutable_kv()->set_mod_revision(change.revision);
  }
  response.set_fragment(fragment);
  return response;
}

std::string Text(EventAssembler::Chunk chunk) {
  std::string text;
  for (const Event& event : chunk.events) {
    text += event.kv.key + "@" + std::to_string(event.kv.mod_revision.value) + " ";
  }
  return text + "through " + std::to_string(chunk.through.value);
}

TEST(EventAssembler, GivesWholeTransactions) {
  EventAssembler assembler(Revision{4});
  ASSERT_TRUE(assembler.Add(Response({{5, "a"}, {6, "b"}, {6, "c"}})).ok());
  EXPECT_EQ(Text(assembler.Take()), "a@5 b@6 c@6 through 6");
  EXPECT_EQ(Text(assembler.Take()), "through 6");
  ASSERT_TRUE(assembler.Add(Response({})).ok());
  EXPECT_EQ(Text(assembler.Take()), "through 6");
}

TEST(EventAssembler, DropsWhatIsKnown) {
  EventAssembler assembler(Revision{4});
  ASSERT_TRUE(assembler.Add(Response({{3, "x"}, {4, "x"}, {5, "a"}})).ok());
  EXPECT_EQ(Text(assembler.Take()), "a@5 through 5");
}

TEST(EventAssembler, HoldsARevisionBackThatIsCut) {
  EventAssembler assembler(Revision{4});
  ASSERT_TRUE(assembler.Add(Response({{5, "a"}, {6, "b"}}, true)).ok());
  EXPECT_EQ(Text(assembler.Take()), "a@5 through 5");
  ASSERT_TRUE(assembler.Add(Response({{6, "c"}}, true)).ok());
  EXPECT_EQ(Text(assembler.Take()), "through 5");
  ASSERT_TRUE(assembler.Add(Response({{6, "d"}, {7, "e"}})).ok());
  EXPECT_EQ(Text(assembler.Take()), "b@6 c@6 d@6 e@7 through 7");
}

TEST(EventAssembler, FindsWhatIsLost) {
  EventAssembler first(Revision{4});
  EXPECT_EQ(first.Add(Response({{6, "a"}})).reason(), Reason::kUnavailable);
  EXPECT_TRUE(first.lost());
  EventAssembler middle(Revision{4});
  EXPECT_EQ(middle.Add(Response({{5, "a"}, {7, "b"}})).reason(), Reason::kUnavailable);
  EXPECT_TRUE(middle.lost());
}

TEST(EventAssembler, SaysWhyTheWatchEnded) {
  pb::WatchResponse compacted;
  compacted.set_canceled(true);
  compacted.set_compact_revision(9);
  EventAssembler assembler(Revision{4});
  EXPECT_EQ(assembler.Add(compacted).reason(), Reason::kExpired);
  pb::WatchResponse denied;
  denied.set_canceled(true);
  denied.set_cancel_reason("etcdserver: permission denied");
  const Status status = assembler.Add(denied);
  EXPECT_EQ(status.reason(), Reason::kUnavailable);
  EXPECT_NE(status.message().find("permission denied"), std::string_view::npos) << status;
  EXPECT_FALSE(assembler.lost());
}

}  // namespace
}  // namespace berth::store
