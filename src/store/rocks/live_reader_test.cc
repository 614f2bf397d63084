// SPDX-License-Identifier: Apache-2.0
// A store is read from outside while it is written: what was acknowledged before is there, as of
// one revision, and the writer does not notice.
#include "store/rocks/live_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/check.h"
#include "rt/asio/asio_loop.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

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
    const auto state = ReadLiveStore(options.dir, folder + "/scratch", [&](const KeyValue& item) {
      seen[item.key] = item.value.view();
      return OkStatus();
    });
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->keys, 12U);
    EXPECT_EQ(seen.size(), 12U);
    EXPECT_EQ(seen["/one"], std::to_string(written - 1));
    EXPECT_EQ(seen["/other"], seen["/one"]);
    EXPECT_EQ(state->revision.value, rt::RunTask(loop, handle->CurrentRevision())->value);
    EXPECT_FALSE(std::filesystem::exists(folder + "/scratch"));
  }
  handle.reset();
  ASSERT_TRUE(rt::RunTask(loop, (*opened)->Close()).ok());
  const auto none = ReadLiveStore(
      folder + "/absent", folder + "/scratch", [](const KeyValue&) { return OkStatus(); });
  EXPECT_TRUE(none.status().Is(Reason::kNotFound)) << none.status();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::store
