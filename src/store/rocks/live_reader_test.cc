// SPDX-License-Identifier: Apache-2.0
// A store is read from outside while it is written: what was acknowledged before is there, as of
// one revision, and the writer does not notice.
#include "store/rocks/live_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "base/check.h"
#include "rt/asio/asio_loop.h"
#include "store/rocks/linked_files.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

size_t EntriesOf(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

rt::Task<Status> PutBoth(Store* store, int number) {
  Txn txn;
  txn.ops.push_back(Op::Put("/one", Bytes(std::to_string(number))));
  txn.ops.push_back(Op::Put("/other", Bytes(std::to_string(number))));
  txn.ops.push_back(Op::Put("/n/" + std::to_string(number), Bytes(std::string(10'000, 'x'))));
  if (number >= 10) txn.ops.push_back(Op::Delete("/n/" + std::to_string(number - 10)));
  const auto committed = co_await store->Commit(std::move(txn));
  co_return committed.status();
}

TEST(LiveReader, ReadsWhatWasAcknowledgedOfAStoreInUse) {
  std::string folder = (std::filesystem::temp_directory_path() / "berth-live-XXXXXX").string();
  CHECK(mkdtemp(folder.data()) != nullptr);
  rt::AsioLoop loop("test");
  RocksOptions options;
  options.dir = folder + "/store";
  options.memtable_bytes = 64 * 1024;  // files come and go all the time
  // A reader that was killed left this.
  std::filesystem::create_directory(options.dir + ".reading-x1y2z3");
  auto opened = RocksStore::Open(loop, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::unique_ptr<Store> handle = (*opened)->NewHandle();
  int written = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(rt::RunTask(loop, PutBoth(handle.get(), written++)).ok());
    }
    if (round == 2) {
      const auto now = rt::RunTask(loop, handle->CurrentRevision());
      ASSERT_TRUE(rt::RunTask(loop, handle->Compact(*now)).ok());
    }
    std::map<std::string, std::string> seen;
    const auto state = ReadLiveStore(options.dir, [&](const KeyValue& item) {
      seen[item.key] = item.value.view();
      return OkStatus();
    });
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->keys, 12U);
    EXPECT_EQ(seen.size(), 12U);
    EXPECT_EQ(seen["/one"], std::to_string(written - 1));
    EXPECT_EQ(seen["/other"], seen["/one"]);
    EXPECT_EQ(state->revision.value, rt::RunTask(loop, handle->CurrentRevision())->value);
    EXPECT_EQ(EntriesOf(folder), 1U) << "the store, and nothing else";
  }
  handle.reset();
  ASSERT_TRUE(rt::RunTask(loop, (*opened)->Close()).ok());
  const auto none = ReadLiveStore(folder + "/absent", [](const KeyValue&) { return OkStatus(); });
  EXPECT_TRUE(none.status().Is(Reason::kNotFound)) << none.status();
  std::filesystem::remove_all(folder);
}

std::set<std::string> LogsOf(const std::string& dir) {
  std::set<std::string> logs;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() == ".log") logs.insert(entry.path().filename());
  }
  return logs;
}

// What RocksDB's own reader from outside missed: a log that is written out, and removed, between a
// look at the files and one at the logs.
TEST(LiveReader, MissesNothingThatIsWrittenOutMeanwhile) {
  std::string folder = (std::filesystem::temp_directory_path() / "berth-live-XXXXXX").string();
  CHECK(mkdtemp(folder.data()) != nullptr);
  rt::AsioLoop loop("test");
  RocksOptions options;
  options.dir = folder + "/store";
  options.memtable_bytes = 64 * 1024;
  auto opened = RocksStore::Open(loop, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::unique_ptr<Store> handle = (*opened)->NewHandle();
  int written = 0;
  const auto write = [&] { ASSERT_TRUE(rt::RunTask(loop, PutBoth(handle.get(), written++)).ok()); };
  for (int i = 0; i < 25; ++i) write();
  Txn last;
  last.ops.push_back(Op::Put("/last", Bytes("acknowledged")));
  ASSERT_TRUE(rt::RunTask(loop, handle->Commit(std::move(last))).ok());
  const auto writer_goes_on = [&] {
    const std::set<std::string> before = LogsOf(options.dir);
    const auto now = rt::RunTask(loop, handle->CurrentRevision());
    ASSERT_TRUE(rt::RunTask(loop, handle->Compact(*now)).ok());
    const auto one_is_there = [&](const std::set<std::string>& logs) {
      return std::ranges::any_of(before, [&](const auto& log) { return logs.contains(log); });
    };
    while (one_is_there(LogsOf(options.dir))) write();
  };
  LinkedFolder linked(options.dir);
  ASSERT_TRUE(linked.Link(writer_goes_on).ok());

  RocksOptions copy;
  copy.dir = linked.path();
  auto copied = RocksStore::Open(loop, copy);
  ASSERT_TRUE(copied.ok()) << copied.status();
  std::unique_ptr<Store> reader = (*copied)->NewHandle();
  RangeRequest all;
  all.start = "/";
  all.end = kNoEnd;
  const auto state = rt::RunTask(loop, reader->Range(all));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->items.size(), 13U);
  EXPECT_EQ(state->items.front().key, "/last");
  reader.reset();
  ASSERT_TRUE(rt::RunTask(loop, (*copied)->Close()).ok());
  handle.reset();
  ASSERT_TRUE(rt::RunTask(loop, (*opened)->Close()).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::store
