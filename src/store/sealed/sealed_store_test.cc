// SPDX-License-Identifier: Apache-2.0
// A sealed store keeps the contract, nothing behind it is readable, values cannot be exchanged, and
// a change of keys loses nothing whenever it is broken off.
#include "store/sealed/sealed_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/check.h"
#include "pki/private_file.h"
#include "rt/join_all.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"
#include "store/conformance/store_contract.h"
#include "store/memory/memory_store.h"
#include "store/memory/testing/memory_under_test.h"

namespace berth::store {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-keys-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file() const { return path_ + "/keys"; }

 private:
  std::string path_;
};

std::shared_ptr<KeyFile> OpenKeys(const Folder& folder) {
  auto keys = KeyFile::Open(folder.file(), MissingKeys::kMake);
  CHECK(keys.ok()) << keys.status();
  return *std::move(keys);
}

const SealedKeys kSecrets{.prefixes = {"/secrets/", "/guard/encryption"}};

TEST(SealedStore, KeepsTheContract) {
  const Folder folder;
  // Many of the keys of the contracts, not all. Not the one whose value is as large as can be.
  const SealedKeys sealed{.prefixes = {"/", "a", "b", "ke", "l", "p"}};
  const MemoryUnderTest::Wrap seal = [&](Store& handle) {
    return std::make_unique<SealedStore>(handle, OpenKeys(folder), sealed);
  };
  for (const StoreContract& contract : StoreContracts()) {
    SCOPED_TRACE(contract.name);
    RunStoreContract([&] { return std::make_unique<MemoryUnderTest>(1, seal); }, contract);
  }
  for (uint64_t seed = 1; seed <= 10 && !testing::Test::HasFailure(); ++seed) {
    MemoryUnderTest under_test(1, seal);
    RandomOperationsMatchTheModel(under_test, seed, 100);
  }
}

class SealedStoreTest : public testing::Test {
 protected:
  void Put(Store& store, const std::string& key, const std::string& value) {
    Txn txn;
    txn.ops.push_back(Op::Put(key, Bytes(value)));
    const auto result = rt::RunTask(loop_, store.Commit(std::move(txn)));
    ASSERT_TRUE(result.ok()) << result.status();
  }
  Result<std::string> Get(Store& store, const std::string& key) {
    RangeRequest request;
    request.start = key;
    TRY(const RangeResult result, rt::RunTask(loop_, store.Range(std::move(request))));
    if (result.items.empty()) return NotFound(key);
    return std::string(result.items[0].value.view());
  }
  Status Reseal() { return rt::RunTask(loop_, ResealAll(*inner_, keys_, kSecrets)).status(); }

  Folder folder_;
  rt::SimLoop loop_{1};
  std::unique_ptr<MemoryStore> memory_ = MemoryStore::Open(loop_);
  std::unique_ptr<Store> inner_ = memory_->NewHandle();
  std::shared_ptr<KeyFile> keys_ = OpenKeys(folder_);
  SealedStore store_{*inner_, keys_, kSecrets};
};

TEST_F(SealedStoreTest, HidesSecretsAndNothingElse) {
  Put(store_, "/secrets/a", "hunter2");
  Put(store_, "/maps/a", "plain");
  EXPECT_EQ(Get(store_, "/secrets/a").value(), "hunter2");
  EXPECT_EQ(Get(*inner_, "/maps/a").value(), "plain");
  const std::string raw = Get(*inner_, "/secrets/a").value();
  EXPECT_EQ(raw.find("hunter2"), std::string::npos);
  EXPECT_EQ(SealedWith(raw), keys_->ring().first().id);
  Put(store_, "/secrets/b", "hunter2");
  EXPECT_NE(Get(*inner_, "/secrets/b").value(), raw) << "equal values do not look equal";
}

// It stays sealed for everybody who reads, and keeps nobody from the others.
TEST_F(SealedStoreTest, AValueOfAnotherObjectOrADamagedOneIsNotOpened) {
  Put(store_, "/secrets/a", "of a");
  const std::string of_a = Get(*inner_, "/secrets/a").value();
  Put(*inner_, "/secrets/b", of_a);
  std::string damaged = of_a;
  damaged.back() ^= 1;
  Put(*inner_, "/secrets/c", damaged);
  Put(store_, "/secrets/d", "of d");
  RangeRequest all{.start = "/secrets/", .end = "/secrets0", .revision = {}, .limit = 0};
  const auto read = rt::RunTask(loop_, store_.Range(std::move(all)));
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<std::string> values;
  for (const KeyValue& item : read->items) values.emplace_back(item.value.view());
  EXPECT_EQ(values, (std::vector<std::string>{"of a", of_a, damaged, "of d"}));
}

TEST_F(SealedStoreTest, AChangeOfKeysSealsWhatCanBeReadAndIsNotOverWithTheRest) {
  Put(store_, "/secrets/a", "of a");
  Put(*inner_, "/secrets/b", Get(*inner_, "/secrets/a").value());
  Put(store_, "/secrets/c", "of c");
  ASSERT_TRUE(KeyFile::Add(folder_.file(), KeyFile::Place::kFirst).ok());
  ASSERT_TRUE(keys_->Reload().ok());
  const Status resealed = Reseal();
  EXPECT_TRUE(resealed.message().contains("/secrets/b")) << resealed;
  const std::string& first = keys_->ring().first().id;
  EXPECT_EQ(SealedWith(Get(*inner_, "/secrets/a").value()), first);
  EXPECT_NE(SealedWith(Get(*inner_, "/secrets/b").value()), first);
  EXPECT_EQ(SealedWith(Get(*inner_, "/secrets/c").value()), first);
}

TEST_F(SealedStoreTest, NamesTheKeyThatIsMissing) {
  Put(store_, "/secrets/a", "value");
  const std::string id = keys_->ring().first().id;
  std::filesystem::remove(folder_.file());
  SealedStore other(*inner_, OpenKeys(folder_), kSecrets);
  const auto read = Get(other, "/secrets/a");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find(id), std::string::npos) << read.status();
  EXPECT_NE(read.status().message().find(folder_.file()), std::string::npos) << read.status();
  EXPECT_FALSE(read.status().Is(Reason::kNotFound)) << "the object is there";
}

TEST_F(SealedStoreTest, WatchesSeeWhatWasWritten) {
  WatchRequest request{.start = "/", .end = std::string(kNoEnd), .from = {}};
  auto watch = rt::RunTask(loop_, store_.StartWatch(request));
  ASSERT_TRUE(watch.ok());
  Put(store_, "/secrets/a", "one");
  Put(store_, "/secrets/a", "two");
  std::vector<Event> events;
  while (events.size() < 2) {
    auto batch = rt::RunTask(loop_, (*watch)->Next());
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (Event& event : batch->events) events.push_back(std::move(event));
  }
  EXPECT_EQ(events[1].kv.value.view(), "two");
  EXPECT_EQ(events[1].previous.value().value.view(), "one");
}

TEST_F(SealedStoreTest, ConflictsShowWhatIsThere) {
  Put(store_, "/secrets/a", "mine");
  Txn txn;
  txn.conditions.push_back(Condition::Absent("/secrets/a"));
  const auto result = rt::RunTask(loop_, store_.Commit(std::move(txn)));
  ASSERT_TRUE(result.ok());
  ASSERT_FALSE(result->committed);
  EXPECT_EQ(result->conflicts.at(0).value.view(), "mine");
}

TEST_F(SealedStoreTest, AnAddedKeyIsTakenOverAndOldOnesCanGoOnceNothingNeedsThem) {
  Put(*inner_, "/secrets/old", "from before encryption");
  for (int i = 0; i < 50; ++i) Put(store_, "/secrets/" + std::to_string(i), "value");
  const auto added = KeyFile::Add(folder_.file(), KeyFile::Place::kFirst);
  ASSERT_TRUE(added.ok());
  ASSERT_TRUE(keys_->Reload().ok());
  EXPECT_EQ(Get(store_, "/secrets/7").value(), "value") << "the older key still decrypts";
  ASSERT_TRUE(Reseal().ok());
  EXPECT_EQ(KeyFile::Retire(folder_.file()).value(), 1U);
  ASSERT_TRUE(keys_->Reload().ok());
  EXPECT_EQ(Get(store_, "/secrets/7").value(), "value");
  EXPECT_EQ(Get(store_, "/secrets/old").value(), "from before encryption");
  EXPECT_EQ(SealedWith(Get(*inner_, "/secrets/old").value()), *added);
}

TEST_F(SealedStoreTest, AnotherServersNewKeyIsReadAtOnce) {
  const std::shared_ptr<KeyFile> others = OpenKeys(folder_);
  ASSERT_TRUE(KeyFile::Add(folder_.file(), KeyFile::Place::kFirst).ok());
  ASSERT_TRUE(others->Reload().ok());
  SealedStore other(*inner_, others, kSecrets);
  Put(other, "/secrets/a", "value");
  EXPECT_EQ(Get(store_, "/secrets/a").value(), "value");
}

TEST_F(SealedStoreTest, AStagedKeyEncryptsOnlyWhenItIsPromoted) {
  const std::string before = keys_->ring().first().id;
  const auto staged = KeyFile::Add(folder_.file(), KeyFile::Place::kLast);
  ASSERT_TRUE(keys_->Reload().ok());
  EXPECT_EQ(keys_->ring().first().id, before);
  EXPECT_EQ(KeyFile::PromoteLast(folder_.file()).value(), *staged);
  ASSERT_TRUE(keys_->Reload().ok());
  EXPECT_EQ(keys_->ring().first().id, *staged);
}

rt::Task<Status> WriteOn(Store* store, int writes) {
  for (int i = 0; i < writes; ++i) {
    Txn txn;
    txn.ops.push_back(
        Op::Put("/secrets/" + std::to_string(i % 40), Bytes("later " + std::to_string(i))));
    CO_TRY_STATUS(co_await store->Commit(std::move(txn)));
  }
  co_return OkStatus();
}

rt::Task<Status> ResealSome(Store* inner, std::shared_ptr<KeyFile> keys) {
  const auto resealed = co_await ResealAll(*inner, std::move(keys), kSecrets);
  co_return resealed.status();
}

rt::Task<Status> WriteUntil(Store* store, const bool* ended, int writes_max, int* writes) {
  for (; !*ended && *writes < writes_max; ++*writes) {
    CO_TRY_STATUS(co_await WriteOn(store, 1));
    CO_TRY_STATUS(co_await rt::Yield());
  }
  co_return OkStatus();
}

rt::Task<Status> ResealAndSay(Store* inner, std::shared_ptr<KeyFile> keys, bool* ended) {
  const Status status = co_await ResealSome(inner, std::move(keys));
  *ended = true;
  co_return status;
}

// It has the new key, and does not use it yet.
TEST_F(SealedStoreTest, AChangeOfKeysDoesNotWaitForAnotherServerThatWritesWithTheOldOne) {
  const std::shared_ptr<KeyFile> others = OpenKeys(folder_);
  SealedStore other(*inner_, others, kSecrets);
  for (int i = 0; i < 40; ++i) Put(store_, "/secrets/" + std::to_string(i), "first");
  ASSERT_TRUE(KeyFile::Add(folder_.file(), KeyFile::Place::kFirst).ok());
  ASSERT_TRUE(keys_->Reload().ok());
  bool ended = false;
  int writes = 0;
  constexpr int kWritesMax = 5'000;
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(WriteUntil(&other, &ended, kWritesMax, &writes));
  tasks.push_back(ResealAndSay(inner_.get(), keys_, &ended));
  for (const Status& status : rt::RunTask(loop_, rt::JoinAll(std::move(tasks)))) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_LT(writes, kWritesMax);
  for (int i = 1; i < 40; ++i) {
    EXPECT_EQ(SealedWith(Get(*inner_, "/secrets/" + std::to_string(i)).value()),
              keys_->ring().first().id);
  }
  // The other one follows.
  ASSERT_TRUE(others->Reload().ok());
  ASSERT_TRUE(rt::RunTask(loop_, ResealSome(inner_.get(), others)).ok());
  EXPECT_EQ(SealedWith(Get(*inner_, "/secrets/0").value()), keys_->ring().first().id);
  EXPECT_EQ(Get(store_, "/secrets/0").value(), "later 0");
}

TEST_F(SealedStoreTest, AChangeOfKeysThatIsBrokenOffUnderWritesLosesNothing) {
  for (int i = 0; i < 40; ++i) Put(store_, "/secrets/" + std::to_string(i), "first");
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(KeyFile::Add(folder_.file(), KeyFile::Place::kFirst).ok());
    ASSERT_TRUE(keys_->Reload().ok());
    std::vector<rt::Task<Status>> tasks;
    tasks.push_back(WriteOn(&store_, 60));
    tasks.push_back(ResealSome(inner_.get(), keys_));
    for (const Status& status : rt::RunTask(loop_, rt::JoinAll(std::move(tasks)))) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  for (int i = 0; i < 40; ++i) {
    const int last = i < 20 ? i + 40 : i;
    const std::string key = "/secrets/" + std::to_string(i);
    EXPECT_EQ(Get(store_, key).value(), "later " + std::to_string(last));
    EXPECT_EQ(SealedWith(Get(*inner_, key).value()), keys_->ring().first().id);
  }
}

TEST_F(SealedStoreTest, FilesThatAreNoKeysAreRefusedByLine) {
  for (const char* text : {"", "# nothing\n", "abc def\n", "0123456789abcdef AAAA\n"}) {
    ASSERT_TRUE(pki::WritePrivateFile(folder_.file(), text).ok());
    const auto opened = KeyFile::Open(folder_.file(), MissingKeys::kMake);
    ASSERT_FALSE(opened.ok()) << text;
    EXPECT_NE(opened.status().message().find(folder_.file()), std::string::npos);
    EXPECT_EQ(opened.status().message().find("AAAA"), std::string::npos);
  }
}

}  // namespace
}  // namespace berth::store
